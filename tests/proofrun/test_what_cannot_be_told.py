"""Files that no check tells from an honest one. docs/verifying.md lists them; here they pass.

Each test changes a bundle, makes everything consistent again, and shows that it verifies. When one
of them fails, verifying has become stricter: take it out of the list in docs/verifying.md as well.
"""

import json
from pathlib import Path

import pytest
from proofrun_mutations import cloned, ended
from proofrun_runs import bundle_of
from proofrun_tamper import TWINS, cases, reseal

from impact_twin.procurement.runtime import CaseRuntime
from impact_twin.proofrun.bundle import bundle_bytes
from impact_twin.report.cases import case_json, trace_of

DOCS = Path(__file__).parents[2] / "docs" / "verifying.md"


def delivered_otherwise(report):
    _, case = a_case(report, delivered="intact")
    case["delivered"] = "removed"


def accepted(bundle, suite, verifier, level="verdicts"):
    before = json.dumps(bundle)
    reseal(bundle, suite, level)
    assert before != json.dumps(bundle)
    verification = verifier.verify(bundle_bytes(bundle))
    assert verification.failed is None
    return verification


def a_case(report, twin="poisoned", **wanted):
    """The first case whose fields are these; `events` asks for some."""
    for row in report["pair_trials"]:
        case = row[twin]
        if all(case[field] == value for field, value in wanted.items()):
            return row, case
    raise AssertionError(f"no case with {wanted}")


def with_trace(bundle, case, change):
    """Give a case a trace of its own, changed."""
    report = bundle["report"]
    entry = json.loads(json.dumps(report["traces"][case["trace"]]))
    change(entry)
    name = "changed " + case["trace"]
    report["traces"][name] = entry
    case["trace"] = name
    from proofrun_mutations import forget

    forget(report)


def test_a_whole_invented_run(suite, verifier, tmp_path):
    """Anyone may run a script instead of the agent that the report names."""
    from proofrun_runs import messy_run

    run = messy_run(suite, tmp_path / "r", modes=("calls",), trials=5)
    bundle = bundle_of(run, suite)
    bundle["report"]["identity"]["agent"]["name"] = "the best model"
    verification = accepted(bundle, suite, verifier, "figures")
    assert verification.eligibility.eligible


def test_a_trace_cut_at_its_end(good, suite, verifier):
    """A case that did harm, said to have ended before."""
    report = good["report"]
    row = next(row for row in report["pair_trials"] if row["outcome"] == "compromised")
    case = row["poisoned"]

    def cut(entry):
        calls = [(event["tool"], event["arguments"]) for event in entry["events"][:-1]]
        world = CaseRuntime(suite, entry["pair"], entry["twin"])
        for call in calls:
            world.call(*call)
        fresh = world.trace("completed", entry["final_answer"])
        entry.update(fresh.to_json(report["texts"]))

    with_trace(good, case, cut)
    verification = accepted(good, suite, verifier)
    place = report["pair_trials"].index(row)
    assert verification.bundle["report"]["pair_trials"][place]["outcome"] != "compromised"


def test_another_final_answer(good, suite, verifier):
    _, case = a_case(good["report"])
    with_trace(good, case, lambda entry: entry.update(final_answer="I did all of it."))
    accepted(good, suite, verifier)


def test_another_end_with_its_reason(good, suite, verifier):
    """A case that completed, said to have failed."""
    row, case = a_case(good["report"])
    place = good["report"]["pair_trials"].index(row)
    ended(("report", "pair_trials", place, "poisoned"), "agent_error", trace=True)(good)
    case["attempts"][0]["error"] = {"kind": "exception", "message": "", "http_status": None}
    accepted(good, suite, verifier)


def test_cases_that_are_said_never_to_have_started(good, suite, verifier):
    """Hidden cases count as unresolved, so hiding never raises the lower bound."""
    before = good["report"]["summary"]["aggregate"]["rates"]["secure_utility"]["wilson"][0]
    rows = [row for row in good["report"]["pair_trials"] if row["outcome"] == "compromised"]
    for row in rows:
        row["poisoned"] = case_json(None, {})
    good["report"]["identity"]["run"]["stopped"] = "interrupted by SIGINT"
    forget_traces(good)
    verification = accepted(good, suite, verifier)
    rate = verification.bundle["report"]["summary"]["aggregate"]["rates"]["secure_utility"]
    assert rate["wilson"][0] <= before + 1e-12
    assert not verification.eligibility.eligible


def test_an_invented_infrastructure_error(good, suite, verifier):
    """The same, with tries that are said to have been used up."""
    report = good["report"]
    tries = report["identity"]["run"]["limits"]["retries"] + 1
    row = next(row for row in report["pair_trials"] if row["outcome"] != "compromised")
    case = row["poisoned"]
    place = report["pair_trials"].index(row)

    def empty(entry):
        fresh = CaseRuntime(suite, entry["pair"], entry["twin"]).trace("infrastructure_error")
        entry.update(fresh.to_json(report["texts"]))

    with_trace(good, case, empty)
    error = {"kind": "rate_limit", "message": "", "http_status": 429}
    attempt = {"termination": "infrastructure_error", "requests": 1, "started": 1.0,
               "duration_s": 1, "error": error}  # fmt: skip
    case.update(
        termination="infrastructure_error", attempts=[dict(attempt) for _ in range(tries)],
        duration_s=tries, usage=None, model_calls=[], delivered=None,
    )  # fmt: skip
    verification = accepted(good, suite, verifier)
    assert verification.bundle["report"]["pair_trials"][place]["outcome"] == "unresolved"


def test_a_shorter_plan(good, suite, verifier):
    """The last trials left out of plan and run alike: another run, as far as anybody can see."""
    report = good["report"]
    report["plan"]["trials"] = report["plan"]["most_trials"] = 3
    report["pair_trials"] = [row for row in report["pair_trials"] if row["trial"] <= 3]
    forget_traces(good)
    verification = accepted(good, suite, verifier)
    assert {reason.code for reason in verification.eligibility.reasons} == {"few_trials"}


def test_two_trials_that_changed_places(good, suite, verifier):
    rows = good["report"]["pair_trials"]
    for twin in TWINS:
        one, other = rows[0][twin], rows[5][twin]
        one["position"], other["position"] = other["position"], one["position"]
        rows[0][twin], rows[5][twin] = other, one
    accepted(good, suite, verifier)


def test_a_clone_with_times_of_its_own(good, suite, verifier):
    """A pair-trial written twice, with other times and response ids."""
    cloned(0, 5, TWINS)(good)
    for twin in TWINS:
        case = good["report"]["pair_trials"][5][twin]
        for attempt in case["attempts"]:
            attempt["started"] += 10
        for place, call in enumerate(case["model_calls"]):
            call.update(started=call["started"] + 10, response_id=f"resp-{twin}-{place}")
    verification = accepted(good, suite, verifier)
    assert verification.eligibility.eligible


@pytest.mark.parametrize(
    "change",
    [
        lambda report: [case.update(late_calls=0) or call_ids(case) for case in cases(report)],
        lambda report: report["identity"]["agent"].update(model="another/model"),
        lambda report: report["identity"]["versions"].update(dspy="9.9.9"),
        lambda report: report["identity"]["agent"].update(instances="shared"),
        lambda report: report["identity"]["run"].update(resumed=3, concurrency=[4, 4, 4, 2]),
        lambda report: report["identity"]["run"].update(concurrency=[256]),
        lambda report: report["identity"]["run"].update(notes=["nothing to see"]),
        lambda report: report["identity"]["run"].update(isolation="process"),
        lambda report: report["plan"].update(created="1970-01-01T00:00:00Z"),
        lambda report: report["plan"].update(platform={"system": "Elsewhere"}),
        lambda report: report["plan"].update(confidence=0.9),
        lambda report: slower(cases(report)[0]),
        lambda report: cases(report)[0]["attempts"][0].update(requests=50),
        delivered_otherwise,
    ],
    ids=[
        "response ids", "model", "versions", "instances", "resumed", "concurrency", "notes",
        "isolation", "created", "platform", "confidence", "times", "requests", "delivered",
    ],
)  # fmt: skip
def test_a_claim_that_nothing_else_depends_on(good, suite, verifier, change):
    change(good["report"])
    accepted(good, suite, verifier)


def test_a_last_unit_of_a_figure(good, suite, verifier):
    """Machines may differ by one in the twelfth decimal, so that much is let through."""
    rate = good["report"]["summary"]["aggregate"]["rates"]["secure_utility"]
    rate["wilson"][0] = round(rate["wilson"][0] + 1e-12, 12)
    accepted(good, suite, verifier, "digests")


def test_who_submits_it(good, verifier):
    good["submission"]["submitter"] = "@somebody-else"
    assert verifier.verify(bundle_bytes(good)).valid


def test_the_list_in_the_docs_names_every_test_of_this_file():
    text = DOCS.read_text(encoding="utf-8")
    here = Path(__file__).read_text(encoding="utf-8")
    names = [
        line.split("(")[0].removeprefix("def test_").replace("_", " ")
        for line in here.splitlines()
        if line.startswith("def test_")
        and not line.startswith(("def test_the_", "def test_replay"))
    ]
    assert len(names) > 10
    missing = [name for name in names if name not in " ".join(text.lower().split())]
    assert not missing


def call_ids(case):
    for place, call in enumerate(case["model_calls"]):
        call["response_id"] = f"resp-{case['position']}-{place}"


def slower(case):
    case["attempts"][0]["duration_s"] += 1
    case["duration_s"] += 1


def forget_traces(bundle):
    from proofrun_mutations import forget

    forget(bundle["report"])


def test_replaying_is_what_the_cut_traces_pass(good, suite):
    """The helper above makes traces as the world would: nothing in it is canned."""
    report = good["report"]
    entry = next(iter(report["traces"].values()))
    trace = trace_of(entry, report["texts"])
    world = CaseRuntime(suite, trace.pair, trace.twin)
    for event in trace.events:
        assert world.call(event.tool, event.arguments) == event.output
