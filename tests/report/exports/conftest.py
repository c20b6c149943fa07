"""Reports that the exports must cope with: hostile ones, and ones of every size."""

import copy
import json

import pytest

from impact_twin.procurement.model import TWINS
from impact_twin.report.evidence import suite_of_report
from impact_twin.report.gates import parse_gate
from impact_twin.report.summary import summary_of

HOSTILE = (
    "<script>document.title='broken'</script>"
    "\"'><img src=x onerror=alert(1)></pre></title></style><svg onload=alert(1)>"
    "\x1b[31mred\x07 \u202egnp.exe\u2066 \ue000 \ud800 שלום عالم `code` |cell| "
    "[link](http://x.example) @everyone #1 http://evil.example/a?b=1&c=2 *bold* _x_ {0} "
    "<!-- ]]> &amp; \r\n- item\n# head\n"
)
KINDS = (
    "demo",
    "mixed",
    "one trial",
    "one pair",
    "nothing ran",
    "unequal",
    "same",
    "hostile",
    "long",
    "no suite",
)


def hostile(report, text=HOSTILE):
    """The report with a text in every place that an agent, a document or a file can fill."""
    found = copy.deepcopy(report)
    found["identity"]["agent"]["name"] = text
    found["identity"]["agent"]["parameters"] = {text: [text, {text: 1.5}]}
    found["identity"]["versions"][text] = text
    found["identity"]["run"]["notes"] = [text]
    found["identity"]["run"]["stopped"] = text
    found["summary"]["warnings"] = [
        {"code": "stopped_early", "text": f"The run stopped early: {text}."},
        {"code": "note", "text": text},
    ]
    found["texts"] = dict.fromkeys(found["texts"], text)
    for trace in found["traces"].values():
        trace["final_answer"] = text
        trace["decision"] = text
        trace["flags"] = [text]
        for event in trace["events"]:
            event["arguments"] = {text: text, "list": [text]}
            event["tool"] = text
    for item in found["pair_trials"]:
        for twin in TWINS:
            item[twin]["attempts"][-1]["error"] = {
                "kind": text,
                "message": text,
                "http_status": None,
            }
    return found


def unequal(report):
    """The report as one of another tool would be: a pair has fewer trials than the others."""
    found = copy.deepcopy(report)
    pair = found["plan"]["pairs"][0]
    last = found["plan"]["trials"]
    found["pair_trials"] = [
        item for item in found["pair_trials"] if (item["pair"], item["trial"]) != (pair, last)
    ]
    found["summary"] = summary_of({**found, "summary": None})
    return found


def own_suite(report):
    """The report as one of a suite that is not at hand."""
    found = copy.deepcopy(report)
    found["identity"]["suite"] |= {"id": "own", "bundled": False, "digest": "sha256:" + "0" * 64}
    return found


@pytest.fixture(scope="session")
def reports(stage, report):
    """A report of every kind in `KINDS`, as a reader of report files gets it."""
    pairs = stage.pairs
    gates = [
        parse_gate("secure_utility >= 0.3"),
        parse_gate("attack_success <= 5%"),
        parse_gate("secure_utility >= 0.1", "pairs"),
    ]
    mixed = dict(
        zip(pairs, ("rfrfrvvfrf", "f" * 10, "v" * 10, "rbttevrfuv", "vvrrfvtevv"), strict=True)
    )
    made = {
        "demo": report,
        "mixed": stage.report(mixed, gates=gates),
        "one trial": stage.report(dict.fromkeys(pairs, "f")),
        "one pair": stage.report(
            {pairs[0]: "rfrfb"}, stopped="the budget is spent", concurrency=(4, 2)
        ),
        "nothing ran": stage.report(dict.fromkeys(pairs, "uuu")),
        "same": stage.report(dict.fromkeys(pairs, "r" * 10), gates=gates),
        "long": stage.report(dict.fromkeys(pairs, "rfrfvvbte" * 22 + "rr")),
    }
    made["unequal"] = unequal(made["mixed"])
    made["hostile"] = hostile(report)
    made["no suite"] = own_suite(report)
    return {key: json.loads(json.dumps(item)) for key, item in made.items()}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def each(reports, kind):
    """Every report by itself, with its suite where it is at hand."""
    return reports[kind], suite_of_report(reports[kind])


@pytest.fixture(scope="session")
def hostile_text():
    return HOSTILE


@pytest.fixture(scope="session")
def with_text():
    return hostile


@pytest.fixture(scope="session")
def long_report(stage):
    """1,000 trials of every pair."""
    return stage.report(dict.fromkeys(stage.pairs, "rfrfrvvftf" * 100))
