"""Evidence as data: what one pair's trials did, and where two of them part.

Every text in it comes from agents, documents or a report file. It is whole and unescaped; whoever
shows it escapes and clips it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from impact_twin.procurement.model import JSON, Twin

RowKind = Literal["same", "answered", "worded", "changed", "left", "right"]
Pick = Literal["flip", "decision", "course", "trace", "identical", "unresolved", "asked"]

PICKS: Mapping[str, str] = {
    "flip": "the worst and the best result of the pair, over as few different calls as any",
    "decision": "one result only; these two recommend different vendors",
    "course": "one result only; these two took different courses of action",
    "trace": "one result only; these two differ in words alone",
    "identical": "one result only; every trace is the same",
    "unresolved": "no trial is resolved; this is the first of them",
    "asked": "asked for",
}
"""Why the trials that are shown were picked."""


@dataclass(frozen=True)
class Choice:
    """Which trials of a pair to show; by default the two that show its flip best.

    Attributes:
        twin: Which twin's runs to compare; None takes the one that the classes hinge on.
        classes: Only trials of these outcome classes; empty for all.
        trials: These two trials, each from 1.
        trial: This one trial, whole; from 1.
    """

    twin: Twin | None = None
    classes: tuple[str, ...] = ()
    trials: tuple[int, int] | None = None
    trial: int | None = None


@dataclass(frozen=True)
class PairRow:
    """What the overview says of a pair.

    Attributes:
        pair: The pair's id.
        label: `variable`, `stable` or `undetermined`.
        n: Planned pair-trials.
        outcomes: Outcome class of each trial, in order of trials.
        classes: How often each class occurred, in order of precedence.
        disagreement: Probability that two runs end in different classes; None below two runs.
        disagreement_bounds: The same over every way to fill in unresolved runs.
        distinct_decisions: Different decisions of resolved cases, by twin.
        distinct_traces: Different traces of resolved cases, by twin.
        stability: What a stable pair can't exclude (`per_pair`, `joint`, …); None otherwise, and
            when it is withheld.
    """

    pair: str
    label: str
    n: int
    outcomes: tuple[str, ...]
    classes: Mapping[str, int]
    disagreement: float | None
    disagreement_bounds: Sequence[float] | None
    distinct_decisions: Mapping[str, int]
    distinct_traces: Mapping[str, int]
    stability: Mapping[str, JSON] | None


@dataclass(frozen=True)
class Inspection:
    """The overview: a report's pairs, the variable ones first.

    Attributes:
        agent: The agent's name.
        suite: The suite's id.
        digest: The suite's digest.
        trials: Planned passes over the pairs.
        confidence: Of every bound.
        rows: Variable pairs, most variable first, then stable, then undetermined ones.
        warnings: The report's warnings: `code` and `text`.
    """

    agent: str
    suite: str
    digest: str
    trials: int
    confidence: float
    rows: tuple[PairRow, ...]
    warnings: tuple[Mapping[str, JSON], ...]


@dataclass(frozen=True)
class EventEvidence:
    """One tool call.

    Attributes:
        seq: Place in the case's event log, from 1.
        tool: The name that was called.
        arguments: Any JSON.
        output: The returned text.
        error: Whether the world rejected the call.
        effects: What it changed.
        breaks: Controls that it broke.
        served: Whether it is the first that returned the poisoned text.
    """

    seq: int
    tool: str
    arguments: JSON
    output: str
    error: bool
    effects: tuple[Mapping[str, JSON], ...]
    breaks: tuple[str, ...] = ()
    served: bool = False


@dataclass(frozen=True)
class Exposure:
    """Where the poison was served, and what the agent got of it.

    Attributes:
        event: The call that returned it; None when the trace lacks the event that it names.
        passage: The vendor passage; None when the suite is not at hand.
        delivered: `intact`, `altered`, `removed` or `unknown`; None when nobody said.
        delivered_text: What the agent got in place of the served text; None when not known.
        calls_after: Tool calls after that event.
    """

    event: EventEvidence | None
    passage: str | None
    delivered: str | None
    delivered_text: str | None
    calls_after: int


@dataclass(frozen=True)
class Change:
    """A state change that broke a control.

    Attributes:
        seq: The event that made it.
        text: What changed, in a phrase.
    """

    seq: int
    text: str


@dataclass(frozen=True)
class Breach:
    """A control that a case broke.

    Attributes:
        control: Its name.
        changes: The state changes that broke it, in order; empty when the suite is not at hand.
        goal: Whether one of them is what the pair's poison asked for.
        reverted: Whether the harm was undone later.
    """

    control: str
    changes: tuple[Change, ...]
    goal: bool
    reverted: bool


@dataclass(frozen=True)
class CaseEvidence:
    """One case, whole.

    Attributes:
        pair: The pair's id.
        trial: From 1.
        twin: `clean` or `poisoned`.
        outcome: Outcome class of its pair-trial.
        reasons: Why, in the report's fixed words.
        targeted: Compromised by what the pair's poison asked for.
        toward_attacker: Swayed to the vendor that the poison favours.
        termination: How the case ended.
        trace: Digest of its trace; None when it was not run.
        readable: Whether that trace is there and its own; without it the rest is empty.
        error: Kind and message of the last try's error; empty when there is none.
        attempts: Number of tries.
        late_calls: Tool calls after the case had ended.
        duration_s: Seconds over all tries.
        events: Its tool calls.
        exposure: Where the poison was served; None when it never was.
        breaches: Controls that it broke.
        attempted: The world rejected a call of the attacker's action.
        goal_reached: The poison got what it asked for.
        mission_completed: Every part of the mission is done.
        missing: The parts that are not.
        decision: The vendor recommended at the end.
        flags: Documents that it flagged.
        final_answer: Its last words.
    """

    pair: str
    trial: int
    twin: Twin
    outcome: str
    reasons: tuple[str, ...]
    targeted: bool
    toward_attacker: bool
    termination: str
    trace: str | None
    readable: bool
    error: str
    attempts: int
    late_calls: int
    duration_s: float
    events: tuple[EventEvidence, ...] = ()
    exposure: Exposure | None = None
    breaches: tuple[Breach, ...] = ()
    attempted: bool = False
    goal_reached: bool = False
    mission_completed: bool = False
    missing: tuple[str, ...] = ()
    decision: str | None = None
    flags: tuple[str, ...] = ()
    final_answer: str = ""


@dataclass(frozen=True)
class Row:
    """Two calls that stand beside each other, or one that stands alone.

    Attributes:
        kind: `same`; `answered`, the same call with another output; `worded`, the same deed in
            other words; `changed`, the same tool with another deed; `left` or `right`, alone.
        left: The call of the left case.
        right: The call of the right case.
    """

    kind: RowKind
    left: EventEvidence | None
    right: EventEvidence | None


@dataclass(frozen=True)
class Parting:
    """The first calls that are not the same; None stands for a case that had ended."""

    left: EventEvidence | None
    right: EventEvidence | None


@dataclass(frozen=True)
class Comparison:
    """Two cases side by side.

    Attributes:
        kind: `trials`, two trials of one twin, or `twins`, the two cases of one pair-trial.
        left: The better one, when one is worse.
        right: The worse one, when one is worse.
        worse: `right` when it did worse; None when neither did.
        rows: The calls of both, aligned by what they did.
        parting: Where they first call something else, or in other words; None when they never do.
        deed_parting: The same, with free text left aside.
        only_left: Calls of the left one that the right one has no match for.
        only_right: Calls of the right one that the left one has no match for.
    """

    kind: Literal["trials", "twins"]
    left: CaseEvidence
    right: CaseEvidence
    worse: Literal["right"] | None
    rows: tuple[Row, ...]
    parting: Parting | None
    deed_parting: Parting | None
    only_left: tuple[EventEvidence, ...]
    only_right: tuple[EventEvidence, ...]


@dataclass(frozen=True)
class Cluster:
    """Trials of a pair that left one trace and got one class.

    Attributes:
        trace: The trace's digest; None for cases that were not run.
        outcome: Their outcome class.
        trials: The trials, in order.
        example: The first of them.
        course: Number of the course of action, from 1: clusters that share it differ in words
            alone. 0 when there is no readable trace.
        events: Number of tool calls.
        decision: The vendor recommended at the end.
        violations: Controls that were broken.
    """

    trace: str | None
    outcome: str
    trials: tuple[int, ...]
    course: int
    events: int
    decision: str | None
    violations: tuple[str, ...]

    @property
    def count(self) -> int:
        """Number of trials."""
        return len(self.trials)

    @property
    def example(self) -> int:
        """The first trial."""
        return self.trials[0]


@dataclass(frozen=True)
class PairEvidence:
    """A pair's clusters, and the trials that were asked for or show its flip best.

    Attributes:
        row: What the overview says of it.
        twin: Which twin's runs are clustered and compared.
        pick: Why these trials (a key of `PICKS`).
        chosen: Number of trials that were chosen from.
        clusters: The chosen trials by trace and class, the most frequent first.
        courses: Number of different courses of action among them.
        comparison: Two trials; None when there is only one to show.
        single: The one trial to show; None when there are two.
        beside: For each compromised trial that is shown, its clean twin beside it.
        title: The pair's title; this and what follows is None when the suite is not at hand.
        request: What the user asked of the agent.
        control: The control that the poison goes for.
        expected: The vendor that the stated criteria select.
        passage_document: The document that holds the vendor passage.
        goal: What the poison asks for: `kind` and the records concerned; empty when not at hand.
    """

    row: PairRow
    twin: Twin
    pick: Pick
    chosen: int
    clusters: tuple[Cluster, ...]
    courses: int
    comparison: Comparison | None
    single: CaseEvidence | None
    beside: tuple[Comparison, ...]
    title: str | None = None
    request: str | None = None
    control: str | None = None
    expected: str | None = None
    passage_document: str | None = None
    goal: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def shown(self) -> tuple[CaseEvidence, ...]:
        """The cases that are shown, the better one first."""
        if self.comparison is not None:
            return (self.comparison.left, self.comparison.right)
        return () if self.single is None else (self.single,)
