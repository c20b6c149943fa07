"""The sections that everybody reads: warnings, headline, intervals, trials and classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from impact_twin.procurement.model import JSON
from impact_twin.report.html import charts
from impact_twin.report.html.markup import section, table, wide
from impact_twin.report.html.words import (
    LISTED,
    WITHHELD,
    class_words,
    ends,
    estimate,
    line,
    name,
    runs,
)
from impact_twin.report.warnings import NO_RESULT, p_words

HEADLINES: Mapping[str, str] = {
    "secure_utility": "poisoned cases with the mission done, exposed, and no control violated",
    "attack_success": "poisoned cases in which the poison got what it asked for",
    "benign_utility": "clean cases with the mission done",
}
"""The rates of the headline, with what each counts."""

OTHERS: Mapping[str, str] = {
    "utility_under_attack": "poisoned cases with the mission done",
    "harm_free": "poisoned cases with no control violated",
    "exposed": "poisoned cases in which the poisoned text was served",
    "resisted": "pair-trials of the class resisted",
}
"""The other rates, with what each counts."""

_MOST_RUNS = 200


def warnings(report: Mapping[str, JSON]) -> str:
    """What a reader must know before the figures."""
    found = report["summary"]["warnings"]
    if not found:
        return section("warnings", "Warnings", "<p>None.</p>")
    lines = []
    for item in found:
        grave = "<strong>No result.</strong> " if item["code"] in NO_RESULT else ""
        lines.append(
            f'<p class="warning">{grave}<strong>{line(item["code"])}</strong>: '
            f"{name(item['text'], 1_000)}</p>"
        )
    return section("warnings", "Warnings", *lines)


def headline(report: Mapping[str, JSON]) -> str:
    """The three rates that matter most, the other rates, decisions and gates."""
    aggregate = report["summary"]["aggregate"]
    codes = {item["code"] for item in report["summary"]["warnings"]}
    parts = []
    if codes & NO_RESULT:
        parts.append("<p>No rates: no case ran to its end.</p>")
    else:
        cards = "".join(_card(report, key, words) for key, words in HEADLINES.items())
        parts.append(f'<div class="cards">{cards}</div>')
        parts.append(_sequential(report))
        parts.append(_decisions(aggregate))
        parts.append(
            table(
                "Other rates of all pair-trials",
                ("rate", "counts", "#estimate", "#interval", "#count", "#unresolved", "#n"),
                (
                    (
                        key.replace("_", " "),
                        words,
                        estimate(aggregate["rates"][key]),
                        ends(aggregate["rates"][key]["wilson"]),
                        f"{aggregate['rates'][key]['count']:,}",
                        f"{aggregate['rates'][key]['unresolved']:,}",
                        f"{aggregate['rates'][key]['n']:,}",
                    )
                    for key, words in OTHERS.items()
                ),
            )
        )
    parts.append(_gates(report["summary"]["gates"]))
    return section("headline", "Headline", *parts)


def _card(report: Mapping[str, JSON], key: str, words: str) -> str:
    rate = report["summary"]["aggregate"]["rates"][key]
    level = f"{100 * rate['confidence']:g} %"
    fixed = "" if rate["fixed_suite"] is None else f"; fixed suite {ends(rate['fixed_suite'])}"
    unresolved = f", {rate['unresolved']:,} unresolved" if rate["unresolved"] else ""
    return (
        f'<div class="card"><h3>{key.replace("_", " ")}</h3><p class="big">{estimate(rate)}</p>'
        f"<p>{level} interval {ends(rate['wilson'])}{fixed}</p>"
        f'<p class="soft">{rate["count"]:,} of {rate["n"]:,} {words}{unresolved}</p></div>'
    )


def _sequential(report: Mapping[str, JSON]) -> str:
    """What a stop rule saw at its looks, the last ones in a part that opens."""
    found = report["summary"]["sequential"]
    if found is None or not found["looks"]:
        return ""
    last = found["looks"][-1]
    looks = table(
        "The last looks of the stop rule",
        ("#trial", "verdict", "#always-valid interval", "#count", "#unresolved", "#n"),
        (
            (
                f"{look['trial']:,}",
                line(look["verdict"]),
                ends(look["interval"]),
                f"{look['count']:,}",
                f"{look['unresolved']:,}",
                f"{look['n']:,}",
            )
            for look in found["looks"][-_MOST_RUNS:]
        ),
    )
    return (
        f"<p>Stop rule {name(found['rule'])}: {line(last['verdict'])} at trial "
        f"{last['trial']:,} of at most {report['plan']['most_trials']:,}; always-valid interval "
        f"{ends(last['interval'])}.</p><details><summary>Its looks</summary>{looks}</details>"
    )


def _decisions(aggregate: Mapping[str, JSON]) -> str:
    effect = aggregate["attack_effect_on_utility"]
    words = []
    if effect["difference"] is not None:
        shown = WITHHELD
        if effect["interval"] is not None:
            lo, hi = (100 * end for end in effect["interval"])
            shown = f"{lo:+.1f} to {hi:+.1f}"
        words.append(
            f"Attack effect on utility: {100 * effect['difference']:+.1f} points "
            f"(interval {shown})."
        )
    found = aggregate["decision_change"]
    if found is not None:
        p_value = "" if found["p_value"] is None else f", {p_words(found['p_value'])}"
        words.append(
            f"Decisions change by {found['change']:.2f} under the poison{line(p_value)}; clean "
            f"runs differ among themselves by {found['clean_clean']:.2f}."
        )
    return f"<p>{' '.join(words)}</p>" if words else ""


def _gates(gates: Sequence[Mapping[str, JSON]]) -> str:
    if not gates:
        return ""
    rows = []
    for gate in gates:
        failed = [item for item in gate["compared"] if not item["held"]]
        shown = gate["compared"] if gate["held"] else failed
        values = ", ".join(
            (f"{name(item['pair'])} " if item["pair"] else "")
            + (WITHHELD if item["value"] is None else f"{item['value']:.3f}")
            for item in shown[:LISTED]
        )
        result = (
            '<span class="good">held</span>' if gate["held"] else '<span class="bad">FAILED</span>'
        )
        rows.append((name(gate["gate"]), gate["scope"], result, f"{gate['end']} end {values}"))
    return table("Gates", ("gate", "scope", "result", "compared"), rows)


def forest(report: Mapping[str, JSON]) -> str:
    """Intervals of the headline rates, pair by pair and for the suite."""
    summary = report["summary"]
    parts = [
        "<p>A bar is the interval, a ring the estimate. A dashed line is what the rate may be "
        "when cases are unresolved. Pairs and the suite have the Wilson score interval; the "
        "fixed-suite interval speaks of exactly these pairs and is approximate.</p>"
    ]
    for key in HEADLINES:
        title = key.replace("_", " ")
        rows = [
            _interval_row(name(row["pair"]), row["rates"][key], "wilson", title, row["pair"])
            for row in summary["pairs"]
        ]
        rate = summary["aggregate"]["rates"][key]
        rows.append(_interval_row("all pair-trials", rate, "wilson", title, "all pair-trials"))
        if rate["fixed_suite"] is not None:
            rows.append(_interval_row("fixed suite", rate, "fixed_suite", title, "fixed suite"))
        parts.append(
            table(
                title.capitalize(),
                (
                    "pair",
                    f"~{charts.axis()}",
                    "#rate",
                    f"#{100 * rate['confidence']:g} % interval",
                    "#n",
                    "#unresolved",
                ),
                rows,
            )
        )
    return section("forest", "Intervals", *parts)


def _interval_row(
    shown: str, rate: Mapping[str, JSON], kind: str, title: str, whose: str
) -> tuple[str, ...]:
    return (
        shown,
        charts.interval(rate, kind, f"{title} of {line(whose)}"),
        estimate(rate),
        ends(rate[kind]),
        f"{rate['n']:,}",
        f"{rate['unresolved']:,}",
    )


def outcomes_of(report: Mapping[str, JSON]) -> dict[str, list[str]]:
    """Outcome classes of every pair, in order of trials."""
    found: dict[str, list[str]] = {pair: [] for pair in report["plan"]["pairs"]}
    for item in report["pair_trials"]:
        found[item["pair"]].append(item["outcome"])
    return found


def heat(report: Mapping[str, JSON]) -> str:
    """Every trial of every pair."""
    found = outcomes_of(report)
    most = max(map(len, found.values()))
    each = charts.per_tile(most, len(found))
    note = "A tile is one trial" if each == 1 else f"A tile is {each} trials, the worst of them"
    texts = "".join(
        f"<dt>{name(pair)}</dt><dd>{_spelled(each)}</dd>" for pair, each in found.items()
    )
    return section(
        "trials",
        "Pairs by trials",
        f"<p>{note}, in the order of trials.</p>",
        charts.legend(report["summary"]["aggregate"]["classes"]),
        wide("Heatmap", charts.heatmap(list(found.items()))),
        f"<details><summary>The same as text</summary><dl>{texts}</dl></details>",
    )


def _spelled(outcomes: Sequence[str]) -> str:
    found = runs(outcomes)
    words = [
        f"{first} {outcome}" if first == last else f"{first} to {last} {outcome}"
        for first, last, outcome in found[:_MOST_RUNS]
    ]
    if len(found) > _MOST_RUNS:
        words.append("and so on; impact-twin report --csv lists every trial")
    return ", ".join(words)


def classes(report: Mapping[str, JSON]) -> str:
    """How often each class occurred."""
    summary = report["summary"]
    rows = [
        (
            name(row["pair"]),
            charts.bar(row["classes"], line(row["pair"])),
            class_words(row["classes"]),
        )
        for row in summary["pairs"]
    ]
    found = summary["aggregate"]["classes"]
    rows.append(("all pair-trials", charts.bar(found, "all pair-trials"), class_words(found)))
    return section(
        "classes",
        "Outcome classes",
        charts.legend(found),
        table("How often each class occurred", ("pair", "~share", "counts"), rows),
    )
