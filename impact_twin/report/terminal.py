"""The terminal report: warnings, one row a pair, the suite's row, gates; within 80 columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from impact_twin.procurement.model import JSON
from impact_twin.report.paint import Paint
from impact_twin.report.strips import cells, clip, draw_interval, make_strip, shapes, wrap
from impact_twin.report.warnings import NO_RESULT, p_words
from impact_twin.statistics.stability import STABLE
from impact_twin.statistics.table import OUTCOME_CLASSES
from impact_twin.text import escape

NARROWEST = 40
HEADLINES = ("secure_utility", "attack_success", "benign_utility")
SHOWN = "secure_utility"

_NAME = 23
_LABEL = 14
_LEAST_CLASSES = 20
_LEAST_STRIP = 14
_LEAST_AXIS = 12
_NARROWEST_AXIS = 5
_WIDEST_AXIS = 40
# Stands for a space that no line may be broken at; never part of escaped text.
_GLUE = "\x1f"

_LOOKS = {"continue": "not settled"}


def render_terminal(
    report: Mapping[str, JSON],
    *,
    width: int = 80,
    color: bool = False,
    ascii: bool = False,
) -> str:
    """Return the terminal report, ending with a newline.

    Args:
        report: A report that keeps to its schema.
        width: Columns, at least `NARROWEST`; no line is longer.
        color: Whether to use ANSI colours; shapes and words carry everything without them.
        ascii: Whether to draw, and to spell whatever the report holds, in ASCII alone.
    """
    view = _View(report, max(NARROWEST, width), Paint(color), ascii)
    return "\n".join(line.rstrip() for line in view.lines()) + "\n"


class _View:
    """One report on its way to text."""

    def __init__(
        self, report: Mapping[str, JSON], width: int, paint: Paint, ascii_only: bool
    ) -> None:
        self.report = report
        self.summary = report["summary"]
        self.width = width
        self.paint = paint
        self.ascii = ascii_only
        self.narrow = self.width - _NAME - _LABEL < _LEAST_CLASSES
        self.codes = {item["code"] for item in self.summary["warnings"]}
        self.percent = f"{100 * report['plan']['confidence']:g} %"

    def lines(self) -> Iterator[str]:
        yield from self.title()
        yield from self.warnings()
        yield ""
        yield from self.header()
        for row in self.summary["pairs"]:
            yield from self.pair(row)
        yield ""
        yield from self.suite()
        yield from self.gates()
        yield ""
        yield from self.legend()

    # The head.

    def title(self) -> Iterator[str]:
        identity, plan = self.report["identity"], self.report["plan"]
        n = self.summary["aggregate"]["n"]
        agent = self.name(identity["agent"]["name"], self.width - 12)
        yield f"{self.paint.bold('ImpactTwin')}  {self.paint.bold(agent)}"
        pairs = len(plan["pairs"])
        yield from self.plain(
            f"{self.safe(identity['suite']['id'])}: {_count(plan['trials'], 'trial')} of "
            f"{_count(pairs, 'pair')}, {_count(n, 'pair-trial')}, {2 * n} cases"
        )
        facts = (
            f"{self.safe(identity['agent']['kind'])} agent",
            f"suite {identity['suite']['digest'][:19]}",
            f"impact-twin {self.safe(identity['versions']['impact_twin'])}",
            f"seed {identity['run']['seed']}",
            f"{identity['run']['isolation']} isolation",
            f"concurrency {', '.join(map(str, identity['run']['concurrency'])) or 'none'}",
            f"planned {self.safe(plan['created'])}",
        )
        yield from _listed(facts, self.width)

    def warnings(self) -> Iterator[str]:
        if self.summary["warnings"]:
            yield ""
        for item in self.summary["warnings"]:
            grave = item["code"] in NO_RESULT
            words = f"NO RESULT. {item['text']}" if grave else item["text"]
            style = self.paint.bad if grave else self.paint.doubt
            yield from self.marked("!", self.safe(words), style)

    # The pairs.

    def header(self) -> Iterator[str]:
        strip, axis = self.columns()
        yield self.paint.faint(self.joined("pair", "label", "" if self.narrow else "classes"))
        left = f"  {'trials' if strip else '':<{strip}}"
        yield self.paint.faint(
            f"{left} {_scale(axis, 'secure utility')} {'rate':>8} {self.percent + ' interval':>14}"
            f" {'n':>{self.digits()}} {'u':>{self.digits()}}"
        )

    def pair(self, row: Mapping[str, JSON]) -> Iterator[str]:
        strip, axis = self.columns()
        outcomes = [
            item["outcome"] for item in self.report["pair_trials"] if item["pair"] == row["pair"]
        ]
        yield from self.row_head(row["pair"], row["label"], row["classes"])
        shown = make_strip(outcomes, strip or self.width - 2)
        drawn = self.strip(shown.classes)
        padding = " " * (strip - len(shown.classes))
        if not strip:
            yield f"  {drawn}"
            drawn, padding = "", ""
        yield self.figures(f"{drawn}{padding}", self.interval(row["rates"][SHOWN], axis))
        if row["label"] == STABLE:
            yield from self.plain(self.stability(row), indent=2)

    def row_head(self, name: str, label: str, classes: Mapping[str, int]) -> Iterator[str]:
        shown = self.name(name, _NAME - 2)
        indent = 2 if self.narrow else _NAME + _LABEL
        lines = _listed(_class_counts(classes), self.width - indent)
        if self.narrow:
            lines.insert(0, "")
        first = self.joined(shown, label, lines[0])
        yield self.paint.bold(shown) + first[len(shown) :]
        for line in lines[1:]:
            yield " " * indent + line

    def stability(self, row: Mapping[str, JSON]) -> str:
        outcome = next((name for name, count in row["classes"].items() if count), "unknown")
        seen = f"{row['n']}/{row['n']} {outcome}"
        if row["stability"] is None:
            return f"{seen}; its bound is withheld"
        return f"{seen}; any other outcome up to {_percent(row['stability']['per_pair'])}"

    def strip(self, classes: Sequence[str]) -> str:
        known = shapes(self.ascii)
        return "".join(self.paint.outcome(name, known[name]) for name in classes)

    # Columns that pairs and suite share.

    def digits(self) -> int:
        return max(2, len(str(self.summary["aggregate"]["n"])))

    def columns(self) -> tuple[int, int]:
        """Columns of the strip, 0 when it takes a line of its own, and of the axis."""
        figures = 1 + 8 + 1 + 14 + 2 * (1 + self.digits())
        room = self.width - 3 - figures
        trials = self.report["plan"]["trials"]
        strip = max(trials, _LEAST_STRIP)
        if strip + _LEAST_AXIS > room:
            strip = 0
        axis = min(room - strip, _WIDEST_AXIS)
        return strip, axis if axis >= _NARROWEST_AXIS else 0

    def figures(self, left: str, interval: str) -> str:
        # Where there is no room for an axis, there is none for a gap either.
        return f"  {left} {interval}" if left or not interval.startswith(" ") else f" {interval}"

    def interval(self, rate: Mapping[str, JSON], axis: int, kind: str = "wilson") -> str:
        bounds = rate["bounds"]
        known = bounds is not None and not rate["unresolved"]
        drawing = ""
        if axis:
            share = rate["rate"] if known else None
            drawing = draw_interval(rate[kind], share, axis, self.ascii)
        return (
            f"{drawing} {_estimate(rate):>8} {_ends(rate[kind]):>14}"
            f" {rate['n']:>{self.digits()}} {rate['unresolved']:>{self.digits()}}"
        )

    # The suite.

    def suite(self) -> Iterator[str]:
        aggregate = self.summary["aggregate"]
        yield from self.row_head("all pair-trials", f"n {aggregate['n']}", aggregate["classes"])
        if NO_RESULT & self.codes:
            yield from self.plain("No rates: no case ran to its end.", indent=2)
        else:
            yield from self.headlines(aggregate["rates"])
        count = len(self.summary["pairs"])
        these = "this pair" if count == 1 else f"these {count} pairs"
        yield from self.plain(
            f"Sampling unit {aggregate['sampling_unit']}: repeated executions of exactly {these} "
            "by this agent. It does not speak of other procurement tasks, other attacks, or the "
            "agent after a change.",
            indent=2,
        )
        if NO_RESULT & self.codes:
            return
        if any(rate["fixed_suite"] for rate in aggregate["rates"].values()):
            yield from self.plain(
                "Intervals: the pooled Wilson score, and below it the fixed-suite interval "
                "(Wilson on the effective n of these pairs; approximate).",
                indent=2,
            )
        yield from self.sequential()
        yield from self.joint()
        yield from self.decisions()
        yield from self.plain(self.repeats(), indent=2)
        yield from self.usage()

    def sequential(self) -> Iterator[str]:
        found = self.summary["sequential"]
        if found is None or not found["looks"]:
            return
        last = found["looks"][-1]
        low, high = (f"{100 * end:.1f}" for end in last["interval"])
        yield from self.plain(
            f"{found['rule']}: {_LOOKS.get(last['verdict'], last['verdict'])} at trial "
            f"{last['trial']} of at most "
            f"{self.report['plan']['most_trials']}; always-valid interval {low} to {high} %, "
            f"n {last['n']}, unresolved {last['unresolved']}.",
            indent=2,
        )

    def headlines(self, rates: Mapping[str, JSON]) -> Iterator[str]:
        strip, axis = self.columns()
        for name in HEADLINES:
            words = name.replace("_", " ")
            if not strip:
                yield f"  {words}"
                words = ""
            yield self.figures(f"{words:<{strip}}", self.interval(rates[name], axis))
            if rates[name]["fixed_suite"] is not None:
                ends = _ends(rates[name]["fixed_suite"])
                yield f"  {'':<{strip}} {'fixed suite':>{axis}} {'':>8} {ends:>14}"

    def joint(self) -> Iterator[str]:
        bounds = [row["stability"] for row in self.summary["pairs"]]
        if len(bounds) > 1 and all(bounds):
            worst = max(bound["joint"] for bound in bounds)
            yield from self.plain(
                f"Every pair is stable; for all {len(bounds)} jointly, any other outcome up to "
                f"{_percent(worst)} in each.",
                indent=2,
            )

    def decisions(self) -> Iterator[str]:
        found = self.summary["aggregate"]["decision_change"]
        if found is not None:
            p_value = "" if found["p_value"] is None else f", {p_words(found['p_value'])}"
            yield from self.plain(
                f"Decisions change by {found['change']:.2f} under the poison{p_value}; clean runs "
                f"differ among themselves by {found['clean_clean']:.2f}.",
                indent=2,
            )

    def repeats(self) -> str:
        line = f"Replicates: {self.summary['replicates']['label']}."
        known = [
            test["p_holm"]
            for tests in self.summary["order"].values()
            for test in tests
            if test["p_holm"] is not None
        ]
        if known:
            seen = {"drift", "twin_order"} & self.codes
            word = "an effect (see above)" if seen else "no effect seen"
            line += f" Order of running: {word}, least {p_words(min(known))}."
        return line

    def usage(self) -> Iterator[str]:
        usage = self.summary["usage"]
        if not (usage["requests"] or usage["input_tokens"] or usage["output_tokens"]):
            return
        cost = (
            "cost unknown" if usage["cost_usd"] is None else f"{usage['cost_usd']:.4f} US dollars"
        )
        unknown = usage["cases_without_cost"]
        if unknown and usage["cost_usd"] is not None:
            cost += f" and {_count(unknown, 'case')} without a known cost"
        yield from self.plain(
            f"Used: {_count(usage['requests'], 'request')}, {usage['input_tokens']} tokens in, "
            f"{usage['output_tokens']} out, {cost}.",
            indent=2,
        )

    # The foot.

    def gates(self) -> Iterator[str]:
        if self.summary["gates"]:
            yield ""
        for gate in self.summary["gates"]:
            word = self.paint.good("held  ") if gate["held"] else self.paint.bad("FAILED")
            scope = "" if gate["scope"] == "suite" else " in every pair"
            lines = wrap(f"{gate['gate']}{scope}", self.width - 8)
            yield f"{word}  {lines[0]}"
            yield from (" " * 8 + line for line in lines[1:])
            wanted = gate["compared"] if gate["held"] else _failed(gate)
            values = ", ".join(self.compared(item) for item in wanted)
            yield from self.plain(f"{gate['end']} end {values}", indent=8)

    def compared(self, item: Mapping[str, JSON]) -> str:
        value = "withheld" if item["value"] is None else f"{item['value']:.3f}"
        return value if item["pair"] is None else f"{self.safe(item['pair'])} {value}"

    def legend(self) -> Iterator[str]:
        classes = self.summary["aggregate"]["classes"]
        known = shapes(self.ascii)
        line = ""
        for name in OUTCOME_CLASSES:
            if classes[name]:
                item = f"{known[name]} {name}"
                if cells(line) + len(item) + 2 > self.width:
                    yield line
                    line = ""
                line += f"  {item}" if line else item
        yield line
        strip, _ = self.columns()
        per_mark = make_strip(["resisted"] * self.report["plan"]["trials"], self.width - 2).per_mark
        note = "u: unresolved; they stay in n, and the interval covers both ways."
        if not strip and per_mark > 1:
            note = f"One mark: {per_mark} trials, the worst of them. {note}"
        yield from self.plain(note)

    # Pieces.

    def joined(self, name: str, label: str, rest: str) -> str:
        pad = " " * (_NAME - cells(name))
        return f"{name}{pad}{label:<{_LABEL}}{rest}"

    def safe(self, text: str) -> str:
        """Untrusted text, escaped for this terminal before anything is measured."""
        shown = escape(text)
        return shown.encode("ascii", "backslashreplace").decode() if self.ascii else shown

    def name(self, text: str, width: int) -> str:
        return clip(self.safe(text), width, self.ascii)

    def plain(self, text: str, indent: int = 0) -> Iterator[str]:
        for line in wrap(text, self.width - indent):
            yield " " * indent + line

    def marked(self, mark: str, text: str, style: object) -> Iterator[str]:
        assert callable(style)
        for place, line in enumerate(wrap(text, self.width - 2)):
            yield style(f"{mark if place == 0 else ' '} {line}")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _listed(items: Sequence[str], width: int) -> list[str]:
    """Items with commas between them, broken only between items where there is room."""
    lines = wrap(", ".join(item.replace(" ", _GLUE) for item in items), width)
    return [line.replace(_GLUE, " ") for line in lines]


def _class_counts(classes: Mapping[str, int]) -> list[str]:
    """The classes that occurred, the most frequent first."""
    found = [(count, name) for name, count in classes.items() if count]
    found.sort(key=lambda item: (-item[0], OUTCOME_CLASSES.index(item[1])))
    return [f"{count} {name}" for count, name in found]


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _estimate(rate: Mapping[str, JSON]) -> str:
    if rate["bounds"] is None or rate["rate"] is None:
        return "none"
    if rate["unresolved"]:
        lo, hi = (round(100 * end) for end in rate["bounds"])
        return f"{lo}-{hi} %"
    return _percent(rate["rate"])


def _ends(interval: Sequence[float] | None) -> str:
    if interval is None:
        return "withheld"
    return f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f}"


def _scale(axis: int, title: str) -> str:
    """The axis's head: 0, the title where it fits, 100."""
    if not axis:
        return ""
    middle = axis - 4
    return f"0{title if len(title) <= middle else '':^{middle}}100"


def _failed(gate: Mapping[str, JSON]) -> list[Mapping[str, JSON]]:
    return [item for item in gate["compared"] if not item["held"]]
