"""Changes a bundle and computes again whatever a careful forger would."""

import contextlib
import json

from impact_twin.canonical import digest_bytes
from impact_twin.procurement.scoring import score_case
from impact_twin.proofrun.bundle import digests_of
from impact_twin.proofrun.quick import digest_parsed as digest
from impact_twin.report.cases import trace_json, trace_of, verdict_json
from impact_twin.report.gates import gates_of
from impact_twin.report.model import judge, plan_of
from impact_twin.report.summary import summary_of

TWINS = ("clean", "poisoned")
LEVELS = ("digests", "figures", "outcomes", "verdicts")


def cases(report):
    """Every case of a report."""
    return [row[twin] for row in report["pair_trials"] for twin in TWINS]


def reseal(bundle, suite=None, level="digests", base=None):
    """Make a changed bundle as consistent as a forger can, up to a level.

    `digests`: every digest. `figures`: the summary too. `outcomes`: the outcome classes too, from
    the verdicts as they stand. `verdicts`: the verdicts too, from the traces as they stand.
    """
    report = bundle["report"]
    steps = [
        (("verdicts",), lambda: _score(report, suite, base)),
        (("verdicts", "outcomes"), lambda: _judge(report, suite)),
        (LEVELS, lambda: _name(report, base)),
        (LEVELS[1:], lambda: _summarise(report)),
        (LEVELS, lambda: report["plan"].update(digest=digest(plan_of(report)))),
        (LEVELS, lambda: bundle["digests"].update(digests_of(report))),
    ]
    for levels, step in steps:
        # What is too broken for a step goes on to the next as it is.
        with contextlib.suppress(Exception):
            if level in levels:
                step()
    return bundle


def _summarise(report):
    report["summary"] = _as_parsed(summary_of(report, gates_of(report["summary"]["gates"])))


def _as_parsed(value):
    """A value as reading its canonical form would give it: 1.0 is written as 1."""
    return json.loads(json.dumps(value), parse_float=_number)


def _number(digits):
    number = float(digits)
    return int(number) if number.is_integer() else number


def _score(report, suite, base):
    same_texts = base is not None and base["report"]["texts"] == report["texts"]
    for name, entry in report["traces"].items():
        if same_texts and base["report"]["traces"].get(name) == entry:
            continue
        with contextlib.suppress(Exception):
            entry.update(verdict_json(score_case(suite, trace_of(entry, report["texts"]))))


def _judge(report, suite):
    for row in report["pair_trials"]:
        found = judge(suite, row["pair"], row["clean"], row["poisoned"], report["traces"])
        row.update(
            outcome=found.outcome,
            reasons=list(found.reasons),
            targeted=found.targeted,
            toward_attacker=found.toward_attacker,
        )


def _name(report, base):
    """Put texts and traces under the digests that they now have."""
    old_texts = {} if base is None else base["report"]["texts"]
    texts = {
        name: name if old_texts.get(name) == text else digest_bytes(text.encode("utf-8"))
        for name, text in report["texts"].items()
    }
    report["texts"] = {texts[name]: text for name, text in report["texts"].items()}
    for entry in report["traces"].values():
        for event in entry["events"]:
            event["output"] = texts.get(event["output"], event["output"])
    for case in cases(report):
        for field in ("delivered_text", "detail"):
            if field in case:
                case[field] = texts.get(case[field], case[field])
    old_traces = {} if base is None else base["report"]["traces"]
    traces = {
        name: name if old_traces.get(name) == entry else digest(trace_json(entry))
        for name, entry in report["traces"].items()
    }
    report["traces"] = {traces[name]: entry for name, entry in report["traces"].items()}
    for case in cases(report):
        case["trace"] = traces.get(case["trace"], case["trace"])
        for attempt in case["attempts"]:
            if "trace" in attempt:
                attempt["trace"] = traces.get(attempt["trace"], attempt["trace"])


def leaves(value, path=()):
    """Yield (path, leaf) of a JSON value; empty objects and arrays are leaves."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list) and value:
        for place, item in enumerate(value):
            yield from leaves(item, (*path, place))
    else:
        yield path, value


def objects(value, path=()):
    """Yield (path, object) of every object in a JSON value."""
    if isinstance(value, dict):
        yield path, value
        for key, item in value.items():
            yield from objects(item, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from objects(item, (*path, place))


def at(value, path):
    """The value at a path."""
    for part in path:
        value = value[part]
    return value


def put(value, path, leaf):
    """Set the value at a path."""
    at(value, path[:-1])[path[-1]] = leaf
