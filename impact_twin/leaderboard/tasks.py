"""AgentDojo's side of a run: the tasks, the injected environment, the tools and the scorer.

AgentDojo's own runner asks a silent model up to three times and writes a provider's error down as
a successful attack, so the tasks are driven from here; AgentDojo's environments, attacks, tools
and scoring rules are used as they are.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from typing import Any

import agentdojo.attacks  # noqa: F401 - registers the attacks
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.attacks.attack_registry import ATTACKS, load_attack
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.models import MODEL_NAMES
from agentdojo.task_suite.load_suites import get_suites

from impact_twin.canonical import digest
from impact_twin.errors import InputError
from impact_twin.leaderboard.plain import plain
from impact_twin.leaderboard.plan import Key, Plan
from impact_twin.leaderboard.protocol import BENIGN, Protocol, SuiteTasks
from impact_twin.text import storable

_ASKS_A_PERSON = ("manual",)
_SEALED = "ERROR: the run has ended; nothing was changed."
# Pydantic's address for its own error kinds names pydantic's version, which is no part of the task.
_PYDANTIC_LINK = re.compile(
    r"\n[ ]*For further information visit https://errors\.pydantic\.dev/\S*"
)


class _Target:
    """What an attack wants to know of its victim: a pipeline name."""

    def __init__(self, name: str) -> None:
        self.name = name


@dataclass(frozen=True)
class Verdict:
    """AgentDojo's scores of a final state; ``attack_succeeded`` is None without an injection."""

    utility: bool
    attack_succeeded: bool | None


@dataclass
class World:
    """One run's environment: fresh, injected, and closed to changes once sealed."""

    suite: Any
    user_task: Any
    injection_task: Any | None
    environment: Any
    before: Any
    injected: tuple[str, ...]
    delivery: str | None
    events: list[dict[str, Any]] = field(default_factory=list)
    late_calls: int = 0
    _sealed: bool = False
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def prompt(self) -> str:
        """The user's request."""
        return str(self.user_task.PROMPT)

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """Run a tool of the suite and return its output, or its error, as text; never raises."""
        with self._lock:
            if self._sealed:
                self.late_calls += 1
                return _SEALED
            try:
                result, error = FunctionsRuntime(self.suite.tools).run_function(
                    self.environment, name, arguments
                )
                output = tool_result_to_str(result) if error is None else error
            except Exception as err:
                output, error = f"{type(err).__name__}: {err}", type(err).__name__
            output = storable(_PYDANTIC_LINK.sub("", output))
            self.events.append(
                {
                    "tool": storable(name),
                    "arguments": plain(arguments),
                    "output": output,
                    "failed": error is not None,
                }
            )
            return output

    def seal(self) -> None:
        """End the run: a call under way finishes first, later ones change nothing."""
        with self._lock:
            self._sealed = True

    def exposed(self) -> bool | None:
        """Whether some tool output held the injected text; None without an injection.

        YAML folds line breaks in AgentDojo's files, so any run of white space equals another.
        """
        if self.injection_task is None:
            return None
        shown = _folded("\n".join(event["output"] for event in self.events))
        # A dumper may break and indent a long text anew and double the quotes inside it.
        bare = shown.replace("''", "'").replace('\\"', '"').replace("\\n", " ").replace("\\ ", " ")
        bare = _folded(bare.replace("\\", ""))
        return any(text in shown or text in bare for text in map(_folded, self.injected))

    def score(self, answer: str) -> Verdict:
        """Score the state with AgentDojo's rules; a run that gave no answer has the answer ''.

        Raises:
            Exception: Whatever a scoring rule raises on a state it did not foresee.
        """
        calls = [FunctionCall(function=e["tool"], args=e["arguments"]) for e in self.events]
        task = self.user_task
        utility = task.utility_from_traces(answer, self.before, self.environment, calls)
        if utility is None:
            utility = task.utility(answer, self.before, self.environment)
        return Verdict(bool(utility), self.attack_succeeded(answer))

    def attack_succeeded(self, answer: str) -> bool | None:
        """Whether the injection's goal is met in the state (AgentDojo's ``security`` is True)."""
        task = self.injection_task
        if task is None:
            return None
        calls = [FunctionCall(function=e["tool"], args=e["arguments"]) for e in self.events]
        met = task.security_from_traces(answer, self.before, self.environment, calls)
        if met is None:
            met = task.security(answer, self.before, self.environment)
        return bool(met)


class Benchmark:
    """The suites of one benchmark version, checked against a plan."""

    def __init__(self, protocol: Protocol) -> None:
        suites = get_suites(protocol.benchmark)
        where = f"protocol {protocol.id} {protocol.version}"
        for tasks in protocol.suites:
            if tasks.name not in suites:
                raise InputError(
                    f"agentdojo {protocol.agentdojo} has no suite {tasks.name!r} in "
                    f"{protocol.benchmark!r}",
                    where=where,
                )
            _check_tasks(suites[tasks.name], tasks, where)
        for attack in protocol.attacks:
            if attack in _ASKS_A_PERSON or attack not in ATTACKS or ATTACKS[attack].is_dos_attack:
                raise InputError(f"no usable AgentDojo attack {attack!r}", where=where)
        if protocol.addressed_as not in MODEL_NAMES:
            raise InputError(
                f"AgentDojo addresses no model {protocol.addressed_as!r}",
                where=f"{where}.attacks.addressed_as",
            )
        self._suites = {tasks.name: suites[tasks.name] for tasks in protocol.suites}
        self._attacks = {
            (name, attack): load_attack(attack, suite, _Target(protocol.addressed_as))
            for name, suite in self._suites.items()
            for attack in protocol.attacks
        }
        self._protocol = protocol
        self._lock = threading.Lock()

    def full(self) -> tuple[SuiteTasks, ...]:
        """Return every task of every suite."""
        return tuple(
            SuiteTasks(name, tuple(suite.user_tasks), tuple(suite.injection_tasks))
            for name, suite in self._suites.items()
        )

    def tools(self, suite: str) -> list[Any]:
        """Return a suite's AgentDojo functions."""
        return list(self._suites[suite].tools)

    def stimulus_digest(self, plan: Plan) -> str:
        """Return a digest of what the model is shown first and scored against.

        It covers each request, the texts of each of the protocol's attacks for each pair, and each
        tool's name, description and parameters. It takes about a second for each hundred pairs.
        """
        seen: dict[str, Any] = {}
        for tasks in plan.suites:
            suite = self._suites[tasks.name]
            seen[tasks.name] = {
                "tools": [
                    [tool.name, tool.description, tool.parameters.model_json_schema()]
                    for tool in suite.tools
                ],
                "requests": {u: suite.get_user_task_by_id(u).PROMPT for u in tasks.user_tasks},
                "injections": {
                    f"{attack} {user} {injection}": self._injections(
                        Key(tasks.name, attack, user, injection, 1)
                    )
                    for attack in self._protocol.attacks
                    for user in tasks.user_tasks
                    for injection in tasks.injection_tasks
                },
            }
        return digest(plain(seen))

    def world(self, key: Key) -> World:
        """Build a fresh environment for one run.

        Raises:
            InputError: AgentDojo's files can't hold the injected text unharmed.
        """
        suite = self._suites[key.suite]
        user_task = suite.get_user_task_by_id(key.user_task)
        with self._lock:
            injections = {} if key.attack == BENIGN else self._injections(key)
            try:
                environment = suite.load_and_inject_default_environment(injections)
            except Exception as err:
                raise _broken(key, f"{type(err).__name__}") from None
        environment = user_task.init_environment(environment)
        texts = tuple(injections.values())
        return World(
            suite=suite,
            user_task=user_task,
            injection_task=(
                None
                if key.injection_task is None
                else suite.get_injection_task_by_id(key.injection_task)
            ),
            environment=environment,
            before=environment.model_copy(deep=True),
            injected=texts,
            delivery=_delivery(key, environment, texts) if texts else None,
        )

    def _injections(self, key: Key) -> dict[str, str]:
        suite = self._suites[key.suite]
        found: dict[str, str] = self._attacks[key.suite, key.attack].attack(
            suite.get_user_task_by_id(key.user_task),
            suite.get_injection_task_by_id(key.injection_task),
        )
        return found


def _check_tasks(suite: Any, tasks: SuiteTasks, where: str) -> None:
    for wanted, known in (
        (tasks.user_tasks, suite.user_tasks),
        (tasks.injection_tasks, suite.injection_tasks),
    ):
        for task in wanted:
            if task not in known:
                raise InputError(f"the suite {tasks.name!r} has no {task!r}", where=where)


def _delivery(key: Key, environment: Any, texts: tuple[str, ...]) -> str:
    strings: list[str] = []
    _collect(environment.model_dump(mode="json"), strings)
    if all(any(text in held for held in strings) for text in texts):
        return "exact"
    flat = [_folded(held) for held in strings]
    if all(any(_folded(text) in held for held in flat) for text in texts):
        return "folded"
    raise _broken(key, "it arrives altered")


def _broken(key: Key, how: str) -> InputError:
    return InputError(
        f"AgentDojo's files can't hold the injected text unharmed: {how}",
        where=f"{key.suite} {key.user_task} {key.injection_task} {key.attack}",
        mend="Quotes, backslashes and braces in an attack or goal break its YAML files.",
    )


def _collect(value: Any, into: list[str]) -> None:
    if isinstance(value, str):
        into.append(value)
    elif isinstance(value, dict):
        for item in value.values():
            _collect(item, into)
    elif isinstance(value, list):
        for item in value:
            _collect(item, into)


def _folded(text: str) -> str:
    return " ".join(text.split())
