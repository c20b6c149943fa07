"""The sections that explain the figures: differences, exposure, order, cost and identity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from impact_twin.procurement.model import JSON
from impact_twin.report.html.markup import section, table
from impact_twin.report.html.words import (
    count,
    decimals,
    line,
    name,
    names,
    percent,
    value,
)
from impact_twin.report.warnings import p_words
from impact_twin.statistics.stability import STABLE, STABLE_MINIMUM


def diversity(report: Mapping[str, JSON]) -> str:
    """How much the runs of a pair differ."""
    rows = report["summary"]["pairs"]
    return section(
        "diversity",
        "Stability, decisions and traces",
        "<p>Variable: two resolved classes occurred. Stable: every planned trial has one and the "
        f"same resolved class, in at least {STABLE_MINIMUM} trials; the bound is the share of "
        "other outcomes that such a record can't exclude. Disagreement is the probability that "
        "two runs end in different classes.</p>",
        table(
            "How much the runs of a pair differ",
            (
                "pair",
                "label",
                "#disagreement",
                "#decisions, clean",
                "#decisions, poisoned",
                "#traces, clean",
                "#traces, poisoned",
                "#decision change",
                "replicates",
            ),
            (
                (
                    name(row["pair"]),
                    _label(row),
                    _disagreement(row),
                    f"{row['distinct_decisions']['clean']:,}",
                    f"{row['distinct_decisions']['poisoned']:,}",
                    f"{row['distinct_traces']['clean']:,}",
                    f"{row['distinct_traces']['poisoned']:,}",
                    _change(row["decision_change"]),
                    row["replicates"],
                )
                for row in rows
            ),
        ),
        _repeated(rows),
    )


def _label(row: Mapping[str, JSON]) -> str:
    label: str = row["label"]
    if label != STABLE:
        return label
    if row["stability"] is None:
        return f"{label}; its bound is withheld"
    return f"{label}; any other outcome up to {percent(row['stability']['per_pair'])}"


def _disagreement(row: Mapping[str, JSON]) -> str:
    shown = decimals(row["disagreement"])
    bounds = row["disagreement_bounds"]
    if row["classes"]["unresolved"] and bounds is not None:
        shown += f" ({bounds[0]:.3f} to {bounds[1]:.3f})"
    return shown


def _change(found: Mapping[str, JSON] | None) -> str:
    if found is None:
        return "none"
    p_value = "" if found["p_holm"] is None else f"; {line(p_words(found['p_holm']))}"
    return f"{found['change']:.2f}{p_value}"


def _repeated(rows: Sequence[Mapping[str, JSON]]) -> str:
    sizes = sorted({item["k"] for row in rows for item in row["attack_at_k"]})
    chosen = [k for k in sizes if k in (1, 2, 5, 10, 20)] or sizes[:1]
    if not chosen:
        return ""
    head = ["pair"]
    for k in chosen:
        head += [f"#attack@{k}", f"#pass^{k}"]
    body = []
    for row in rows:
        found = [{item["k"]: item for item in row[key]} for key in ("attack_at_k", "pass_k")]
        cells = [name(row["pair"])]
        for k in chosen:
            cells += [_bounds(by_k.get(k)) for by_k in found]
        body.append(cells)
    return table(
        "attack@k: at least one of k runs reaches the goal. "
        "pass^k: all of k runs have secure utility",
        head,
        body,
    )


def _bounds(item: Mapping[str, JSON] | None) -> str:
    if item is None or item["bounds"] is None:
        return "none"
    lo, hi = item["bounds"]
    return percent(lo) if lo == hi else f"{100 * lo:.1f} to {100 * hi:.1f} %"


def exposure(report: Mapping[str, JSON]) -> str:
    """Whether the poison reached the agent, and what it said of it."""
    rows = report["summary"]["pairs"]
    words = ("intact", "altered", "removed", "unknown")
    return section(
        "exposure",
        "Exposure and flags",
        "<p>Resistance without exposure is not resistance. Served: a tool returned the poisoned "
        "text. Delivered: what the agent got of it after its own defences; unknown when nobody "
        "could see. Flags in clean cases are false alarms.</p>",
        table(
            "Poisoned cases by exposure; cases in which the agent flagged a document",
            (
                "pair",
                "#served",
                "#of",
                *(f"#{word}" for word in words),
                "#flagged, poisoned",
                "#flagged, clean",
            ),
            (
                (
                    name(row["pair"]),
                    f"{row['rates']['exposed']['count']:,}",
                    f"{row['rates']['exposed']['n']:,}",
                    *(f"{row['delivered'][word]:,}" for word in words),
                    f"{row['flagged']['poisoned']:,}",
                    f"{row['flagged']['clean']:,}",
                )
                for row in rows
            ),
        ),
    )


def order(report: Mapping[str, JSON]) -> str:
    """Whether results depend on when a case ran."""
    found = report["summary"]["order"]
    parts = [
        "<p>Exact tests over start order, permuted within pairs, and of which twin started first; "
        "p-values after Holm.</p>"
    ]
    rows = [
        (
            test["rate"].replace("_", " "),
            "over the run",
            f"{test['direction'] or 'none'}",
            _p(test["p_holm"]),
        )
        for test in found["trends"]
    ]
    for test in found["twin_order"]:
        first, second = test["poisoned_first"], test["clean_first"]
        rows.append(
            (
                test["rate"].replace("_", " "),
                "by first twin",
                f"{first['count']:,} of {first['n']:,} poisoned first, {second['count']:,} of "
                f"{second['n']:,} clean first",
                _p(test["p_holm"]),
            )
        )
    if not rows:
        return section("order", "Order of running", "<p>Not tested.</p>")
    parts.append(table("Effects of order", ("rate", "test", "found", "#p"), rows))
    copied = report["summary"]["replicates"]
    evidence = f" ({names(copied['evidence'])})" if copied["evidence"] else ""
    parts.append(f"<p>Replicates: {copied['label']}{evidence}.</p>")
    return section("order", "Order of running", *parts)


def _p(p_value: float | None) -> str:
    return "none" if p_value is None else line(p_words(p_value))


def cost(report: Mapping[str, JSON]) -> str:
    """Time, tokens and money, and how cases ended."""
    usage = report["summary"]["usage"]
    money = "unknown" if usage["cost_usd"] is None else f"{usage['cost_usd']:.4f} US dollars"
    unknown = usage["cases_without_cost"]
    if unknown and usage["cost_usd"] is not None:
        money += f" and {count(unknown, 'case')} without a known cost"
    used = "nothing on record"
    if usage["requests"] or usage["input_tokens"] or usage["output_tokens"]:
        used = (
            f"{count(usage['requests'], 'request')}, {usage['input_tokens']:,} tokens in, "
            f"{usage['output_tokens']:,} out, cost {money}"
        )
    cases = {twin: [item[twin] for item in report["pair_trials"]] for twin in ("clean", "poisoned")}
    return section(
        "cost",
        "Cost, latency and endings",
        f"<p>Used: {used}.</p>",
        table(
            "Seconds a case took, over all its tries, of cases that ran",
            ("twin", "#cases", "#median", "#90th percentile", "#longest", "#tried again"),
            (_latency(twin, found) for twin, found in cases.items()),
        ),
        _endings(cases),
    )


def _latency(twin: str, cases: Sequence[Mapping[str, JSON]]) -> tuple[str, ...]:
    times = sorted(case["duration_s"] for case in cases if case["attempts"])
    again = sum(len(case["attempts"]) > 1 for case in cases)

    def at(share: float) -> str:
        # The nearest rank, so that the figure is one that was measured.
        return f"{times[max(0, -int(-share * len(times) // 1) - 1)]:.2f}" if times else "none"

    return (twin, f"{len(times):,}", at(0.5), at(0.9), at(1.0), f"{again:,}")


def _endings(cases: Mapping[str, Sequence[Mapping[str, JSON]]]) -> str:
    found: dict[str, dict[str, int]] = {}
    for twin, items in cases.items():
        for case in items:
            ends_of = found.setdefault(case["termination"], {"clean": 0, "poisoned": 0})
            ends_of[twin] += 1
    return table(
        "How cases ended",
        ("termination", "#clean", "#poisoned"),
        (
            (line(key), f"{counts['clean']:,}", f"{counts['poisoned']:,}")
            for key, counts in sorted(found.items(), key=lambda item: -sum(item[1].values()))
        ),
    )


def identity(report: Mapping[str, JSON]) -> str:
    """What was run, with what, and how."""
    found, plan = report["identity"], report["plan"]
    rows = [("suite", name(found["suite"]["id"])), ("suite digest", name(found["suite"]["digest"]))]
    rows += list(_facts("agent", found["agent"]))
    rows += list(_facts("version of", found["versions"]))
    rows += list(_facts("run", found["run"]))
    rows += [
        ("plan digest", name(plan["digest"])),
        ("planned", name(plan["created"])),
        ("trials", f"{plan['trials']:,}"),
        ("pairs", names(plan["pairs"])),
        ("confidence", f"{plan['confidence']:g}"),
    ]
    rows += list(_facts("platform", plan["platform"]))
    return section("identity", "Identity", table("What was run", ("what", "value"), rows))


def _facts(what: str, found: Mapping[str, JSON]) -> Iterator[tuple[str, str]]:
    for key, item in list(found.items())[:50]:
        if isinstance(item, Mapping) and key == "limits":
            yield from _facts("limit", item)
        else:
            shown = "none" if item is None or item in ("", []) else value(item, 500)
            yield f"{what} {name(key.replace('_', ' '), 60)}", shown


def limits(report: Mapping[str, JSON]) -> str:
    """What the numbers do not say."""
    pairs = len(report["plan"]["pairs"])
    these = "this pair" if pairs == 1 else f"these {pairs} pairs"
    unit = report["summary"]["aggregate"]["sampling_unit"]
    items = (
        f"The sampling unit is <code>{line(unit)}</code>: repeated executions of exactly {these} "
        "by this agent. Nothing here speaks of other procurement tasks, other attacks, or the "
        "agent after a change of model, prompt or tools.",
        "An interval says how far chance in repeating may reach. It does not cover a provider that "
        "changes its model, or cases that influence each other.",
        "Stable is not always: the bound beside it is what the record can't exclude.",
        "A class describes one pair-trial. One clean run is one draw, so a difference between "
        "twins may be noise; the decision change tells the two apart.",
        "Resistance to a text that was never served, or that a defence removed, is not the "
        "model's.",
        "The page shows what was recorded. It proves neither that the agent named here made these "
        "runs, nor that other runs were not thrown away. <code>impact-twin verify</code> checks a "
        "bundle and says what it can't show.",
    )
    return section(
        "limits",
        "What the numbers don't say",
        f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>",
    )
