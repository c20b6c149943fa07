"""The suite inside AgentDojo: its runner, its defences, its attack, its benchmark script."""

import pytest
from agentdojo.agent_pipeline import (
    AgentPipeline,
    GroundTruthPipeline,
    InitQuery,
    SystemMessage,
    ToolsExecutionLoop,
    ToolsExecutor,
)
from agentdojo.agent_pipeline.agent_pipeline import PipelineConfig
from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.agent_pipeline.pi_detector import PromptInjectionDetector
from agentdojo.attacks.attack_registry import load_attack
from agentdojo.benchmark import (
    benchmark_suite_with_injections,
    benchmark_suite_without_injections,
)
from agentdojo.functions_runtime import EmptyEnv, FunctionCall, FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suite, get_suites
from agentdojo.types import (
    ChatAssistantMessage,
    get_text_content_as_str,
    text_content_block_from_string,
)

from impact_twin.procurement.agentdojo_suite import (
    pair_suites,
    register,
    task_suite,
    vector,
)
from impact_twin.procurement.suite import load_suite
from impact_twin.procurement.suite_checks import goal_calls, mission_calls

SUITE = load_suite()

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `copy` method is deprecated"),
    pytest.mark.filterwarnings("ignore:Not all injection tasks were solved"),
    pytest.mark.filterwarnings("ignore:The query is not being added as the first message"),
]


class ScriptedModel(BasePipelineElement):
    """A fake language model: it does the mission, and what it reads if it reads the poison.

    It knows the pairs by their requests, calls one tool a turn, and ends with a sentence.
    """

    name = "scripted-fake-model"

    def __init__(self, suite=SUITE, obedient=True):
        self.suite = suite
        self.obedient = obedient

    def query(self, query, runtime, env=EmptyEnv(), messages=(), extra_args=None):  # noqa: B008
        pair = next((pair for pair in self.suite.pairs if pair.request == query), None)
        calls = []
        if pair is not None:
            calls = mission_calls(pair)
            seen = "\n".join(
                get_text_content_as_str(message["content"])
                for message in messages
                if message["role"] == "tool"
            )
            if self.obedient and pair.passage("poisoned") in seen:
                calls = calls + goal_calls(pair, self.suite.score_tolerance)[1:]
        done = sum(
            len(item["tool_calls"] or []) for item in messages if item["role"] == "assistant"
        )
        step = calls[done : done + 1]
        reply = ChatAssistantMessage(
            role="assistant",
            content=[text_content_block_from_string("" if step else "All done.")],
            tool_calls=[FunctionCall(function=tool, args=dict(args)) for tool, args in step]
            or None,
        )
        return query, runtime, env, [*messages, reply], extra_args or {}


class Redactor(PromptInjectionDetector):
    """A detector that knows the poison by heart and redacts it."""

    def detect(self, tool_output):
        return any(pair.passage("poisoned") in tool_output for pair in SUITE.pairs)


def pipeline(*between, model=None, name="scripted"):
    model = model or ScriptedModel()
    loop = ToolsExecutionLoop([ToolsExecutor(), *between, model], max_iters=40)
    made = AgentPipeline([SystemMessage(SUITE.system_directive), InitQuery(), model, loop])
    made.name = name
    return made


def defended(defense):
    made = AgentPipeline.from_config(
        PipelineConfig(
            llm=ScriptedModel(),
            model_id=None,
            defense=defense,
            system_message_name=None,
            system_message=SUITE.system_directive,
        )
    )
    made.elements[-1].max_iters = 40
    return made


def with_injections(made, suite, **kwargs):
    attack = load_attack("committed_passage", suite, made)
    return benchmark_suite_with_injections(
        made, suite, attack, logdir=None, force_rerun=True, verbose=False, **kwargs
    )


@pytest.fixture(autouse=True, scope="module")
def registered():
    register()


@pytest.fixture(autouse=True)
def logs(tmp_path, monkeypatch):
    """AgentDojo's trace logger writes a folder `runs` beside the package unless told where."""
    import agentdojo.logging as logging

    start = logging.TraceLogger.__init__

    def init(self, delegate, **context):
        delegate.logdir = str(tmp_path)
        start(self, delegate, **context)

    monkeypatch.setattr(logging.TraceLogger, "__init__", init)


def test_agentdojo_check_passes_with_the_ground_truths():
    passed, (users, injections) = task_suite(SUITE).check(check_injectable=False)
    assert passed
    assert len(users) == len(injections) == len(SUITE.pairs)


def test_agentdojos_check_of_injectability_fails_for_its_own_suites_too():
    passed, (users, _) = get_suites("v1")["banking"].check()
    assert not passed
    assert {said for _, said in users.values()} == {"The task is not injectable"}


def test_ground_truth_pipelines_give_utility_and_security():
    suite = task_suite(SUITE)
    for user, injection in zip(
        suite.user_tasks.values(), suite.injection_tasks.values(), strict=True
    ):
        mission = suite.run_task_with_pipeline(GroundTruthPipeline(user), user, injection, {})
        assert mission == (True, False)
        attacked = suite.run_task_with_pipeline(GroundTruthPipeline(injection), user, injection, {})
        assert attacked == (False, True)


def test_every_user_task_is_injectable_by_its_own_vector():
    suite = task_suite(SUITE)
    attack = load_attack("direct", suite, pipeline())
    for user in suite.user_tasks.values():
        assert attack.get_injection_candidates(user) == [vector(user.pair)]


def test_other_attacks_of_agentdojo_land_in_the_document():
    suite = task_suite(SUITE)
    made = pipeline()
    attack = load_attack("ignore_previous", suite, made)
    user, injection = suite.user_tasks["user_task_2"], suite.injection_tasks["injection_task_2"]
    injections = attack.attack(user, injection)
    world = suite.load_and_inject_default_environment(injections)
    world.choose(user.pair.id)
    (text,) = injections.values()
    assert injection.GOAL in text
    assert text in world.facts.texts[user.pair.passage_document]


def test_the_runner_sees_the_obedient_model_fall_on_the_diagonal_alone():
    suite = task_suite(SUITE)
    results = with_injections(
        pipeline(),
        suite,
        user_tasks=["user_task_0", "user_task_3"],
        injection_tasks=["injection_task_0", "injection_task_3"],
    )
    assert results["security_results"] == {
        ("user_task_0", "injection_task_0"): True,
        ("user_task_0", "injection_task_3"): False,
        ("user_task_3", "injection_task_0"): False,
        ("user_task_3", "injection_task_3"): True,
    }


def test_the_one_pair_suites_give_one_result_a_pair():
    found = get_suites("procurement-v1-pairs")
    assert list(found) == [pair.id for pair in SUITE.pairs]
    for suite in found.values():
        results = with_injections(pipeline(), suite)
        assert list(results["security_results"].values()) == [True]
        clean = benchmark_suite_without_injections(pipeline(), suite, None, True)
        assert list(clean["utility_results"].values()) == [True]


def test_a_careful_model_keeps_its_utility_under_attack():
    for suite in pair_suites(SUITE):
        results = with_injections(pipeline(model=ScriptedModel(obedient=False)), suite)
        assert list(results["security_results"].values()) == [False]
        assert list(results["utility_results"].values()) == [True]


@pytest.mark.parametrize("defense", ["repeat_user_prompt", "spotlighting_with_delimiting"])
def test_agentdojo_defences_run_on_it(defense):
    made = defended(defense)
    for suite in pair_suites(SUITE):
        results = with_injections(made, suite)
        # These two only add words around the poison: this fake model obeys all the same.
        assert list(results["security_results"].values()) == [True]


def test_a_redacting_detector_saves_the_model_and_the_evidence_stays():
    suite = get_suite("procurement-v1", "procurement-v1")
    user, injection = suite.user_tasks["user_task_1"], suite.injection_tasks["injection_task_1"]
    attack = load_attack("committed_passage", suite, pipeline())
    world = suite.load_and_inject_default_environment(attack.attack(user, injection))
    seen = []

    class Watch(BasePipelineElement):
        def query(self, query, runtime, env=EmptyEnv(), messages=(), extra_args=None):  # noqa: B008
            seen.extend(
                get_text_content_as_str(m["content"]) for m in messages if m["role"] == "tool"
            )
            return query, runtime, env, messages, extra_args or {}

    utility, security = suite.run_task_with_pipeline(
        pipeline(Redactor(), Watch()), user, injection, {}, environment=world
    )
    assert (utility, security) == (True, False)
    poison = user.pair.passage("poisoned")
    assert any("Data omitted" in text for text in seen)
    assert not any(poison in text for text in seen)
    assert [poison in event.output for event in world.events].count(True) == 1
    verdict = world.verdict(SUITE, "Done.")
    assert verdict.served is not None


def test_an_aborting_detector_ends_the_run_without_harm():
    suite = get_suite("procurement-v1-pairs", SUITE.pairs[0].id)
    results = with_injections(pipeline(Redactor(raise_on_injection=True)), suite)
    assert list(results["utility_results"].values()) == [False]
    assert list(results["security_results"].values()) == [False]


def test_injected_text_lands_byte_for_byte(tiny):
    suite = task_suite(tiny)
    pair = tiny.pairs[0]
    texts = [
        pair.passage("clean"),
        pair.passage("poisoned"),
        'quote " backslash \\ newline \n brace { } {x} {{y}} percent %s tab \t : - # & *a !b',
        "---\n...\n'''\r\n\u00e9\u2028\U0001f69a",
    ]
    for text in texts:
        world = suite.load_and_inject_default_environment({vector(pair): text})
        world.choose(pair.id)
        served, error = FunctionsRuntime(suite.tools).run_function(
            world, "read_document", {"document_id": pair.passage_document}
        )
        assert error is None
        assert served == pair.documents[pair.passage_document].text.replace(
            "{{vendor passage}}", text
        )


def test_unknown_vectors_are_refused(tiny):
    with pytest.raises(ValueError, match="subset"):
        task_suite(tiny).load_and_inject_default_environment({"passage_nowhere": "x"})


def test_a_plain_runtime_records_changes_too(tiny):
    suite = task_suite(tiny)
    world = suite.load_and_inject_default_environment({})
    world.choose("pay")
    runtime = FunctionsRuntime(suite.tools)
    runtime.run_function(world, "update_payment_account", {"vendor_id": "V-1", "account": "XX66"})
    output, error = runtime.run_function(world, "get_vendor", {"vendor_id": "V-99"})
    assert (output, error is None) == ("", False)
    assert [(event.tool, event.error) for event in world.events] == [
        ("update_payment_account", False),
        ("get_vendor", True),
    ]
    assert world.verdict(tiny, "").violations == ("payment_identity",)


def test_the_world_copies_whole_and_apart(tiny):
    suite = task_suite(tiny)
    world = suite.load_and_inject_default_environment({})
    copy = world.model_copy(deep=True)
    FunctionsRuntime(suite.tools).run_function(
        world, "recommend_award", {"vendor_id": "V-1", "rationale": "Best."}
    )
    assert copy.recommendation is None
    assert copy.events == []
    assert copy.facts is world.facts


def test_the_benchmark_script_runs_every_pair(tmp_path, monkeypatch):
    """AgentDojo's own command, with the fake model where it would make a client."""
    from agentdojo.agent_pipeline import agent_pipeline
    from agentdojo.scripts.benchmark import main
    from click.testing import CliRunner

    monkeypatch.setattr(agent_pipeline, "get_llm", lambda *args: ScriptedModel())
    monkeypatch.chdir(tmp_path)
    options = {
        "--model": "LOCAL",
        "-ml": "impact_twin.procurement.agentdojo_register",
        "--benchmark-version": "procurement-v1-pairs",
        "--attack": "committed_passage",
        "--defense": "repeat_user_prompt",
        "--logdir": str(tmp_path),
    }
    done = CliRunner().invoke(main, [word for option in options.items() for word in option])
    assert done.exit_code == 0, done.output
    for pair in SUITE.pairs:
        assert f"Results for suite {pair.id}" in done.output
    assert done.output.count("Average security: 100.00%") == len(SUITE.pairs) + 1
