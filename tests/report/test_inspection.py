import json
import re
import unicodedata
from copy import deepcopy
from dataclasses import replace

import pytest

from impact_twin.procurement.model import trace_digest
from impact_twin.report.cases import trace_json
from impact_twin.report.evidence import inspect_pair, inspect_report
from impact_twin.report.evidence_model import Choice
from impact_twin.report.inspection import render_inspection, render_pair
from impact_twin.report.strips import cells
from impact_twin.report.summary import summary_of

PAIR = "award-bias"
ANSI = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = (
    "\x1b[31mred\x1b[0m [bold]x[/bold] \u202egnitirw\n\r\x07\u2028 \ue000 é 評価 שלום \U000e0041"
)
LOOKS = [(60, False), (80, False), (100, True), (160, True), (40, True)]


@pytest.fixture(scope="module")
def reports(stage):
    pairs = stage.pairs
    mixed = dict(zip(pairs, ("rfrfvv", "ffffff", "vvvvvv", "rbtefu", "rrrrrf"), strict=True))
    return {
        "mixed": stage.report(mixed),
        "one pair": stage.report({PAIR: "rfrfr"}),
        "one trial": stage.report(dict.fromkeys(pairs, "f")),
        "unresolved": stage.report(dict.fromkeys(pairs, "euu")),
        "same": stage.report(dict.fromkeys(pairs, "rrrrr")),
    }


@pytest.fixture(scope="module")
def hostile(stage):
    """A report with hostile text wherever an agent, a document or a pair's name may put it."""
    report = json.loads(json.dumps(stage.report({PAIR: "rfrfr"})))
    item = report["pair_trials"][1]
    entry = deepcopy(report["traces"][item["poisoned"]["trace"]])
    entry["final_answer"] = HOSTILE + "x" * 2**20
    entry["decision"] = entry["flags"] = None
    entry["decision"], entry["flags"] = HOSTILE, [HOSTILE]
    entry["missing"] = [f"evaluation {HOSTILE}"]
    event = entry["events"][-1]
    event["tool"] = HOSTILE
    event["arguments"] = {HOSTILE: HOSTILE, "deep": [{HOSTILE: "y" * 5000}]}
    event["effects"] = [{"kind": HOSTILE, "vendor": HOSTILE, "before": HOSTILE, "after": HOSTILE}]
    report["texts"][event["output"]] = HOSTILE * 500
    name = trace_digest(trace_json(entry))
    report["traces"][name] = entry
    item["poisoned"].update(trace=name, delivered="altered", delivered_text=event["output"])
    item["poisoned"]["attempts"][-1]["error"] = {
        "kind": "x",
        "message": HOSTILE,
        "http_status": None,
    }
    report["identity"]["agent"]["name"] = HOSTILE
    report["summary"] = summary_of(report)
    report["summary"]["warnings"].append({"code": "note", "text": HOSTILE})
    return report


def every_view(report, suite, **look):
    overview = inspect_report(report)
    yield render_inspection(overview, **look)
    for row in overview.rows:
        for choice in (Choice(), Choice(trial=1), Choice(twin="clean")):
            yield render_pair(inspect_pair(report, row.pair, suite, choice=choice), **look)


@pytest.mark.parametrize("name", ["mixed", "one pair", "one trial", "unresolved", "same"])
@pytest.mark.parametrize(("width", "columns"), LOOKS)
def test_no_line_is_wider_than_the_terminal(reports, suite, name, width, columns):
    for text in every_view(reports[name], suite, width=width, columns=columns):
        assert max(cells(line) for line in text.splitlines()) <= width
        assert text.endswith("\n")
        assert not text.endswith("\n\n")
        assert all(line == line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize(("width", "columns"), LOOKS)
@pytest.mark.parametrize("ascii_only", [False, True])
def test_hostile_text_is_shown_as_text(hostile, suite, width, columns, ascii_only):
    for text in every_view(hostile, suite, width=width, columns=columns, ascii=ascii_only):
        unsafe = {
            char
            for char in text
            if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        }
        assert unsafe <= {"\n"}
        assert not ascii_only or text.isascii()
        assert max(cells(line) for line in text.splitlines()) <= width
    shown = render_pair(inspect_pair(hostile, PAIR, suite), width=160)
    assert r"\x1b[31mred" in shown
    assert "[bold]x[/bold]" in shown
    assert r"\u202e" in shown


def test_a_long_answer_is_clipped_and_says_so(hostile, suite):
    text = render_pair(inspect_pair(hostile, PAIR, suite))
    assert len(text) < 60_000
    length = len(HOSTILE) + 2**20
    assert f"[2,000 of {length:,} characters; --json has all]" in text
    whole = render_pair(inspect_pair(hostile, PAIR, suite, choice=Choice(trial=2)))
    assert f"[20,000 of {length:,} characters; --json has all]" in whole


def test_colour_adds_nothing_but_colour(reports, suite):
    for width, columns in LOOKS:
        look = {"width": width, "columns": columns}
        plain = list(every_view(reports["mixed"], suite, **look))
        painted = list(every_view(reports["mixed"], suite, **look, color=True))
        assert [ANSI.sub("", text) for text in painted] == plain
        assert all("\x1b[" in text for text in painted)


def test_the_overview_gives_every_figure_of_a_pair(reports):
    for width, columns in LOOKS:
        text = render_inspection(inspect_report(reports["mixed"]), width=width, columns=columns)
        flat = " ".join(text.split())
        assert flat.index("Variable:") < flat.index("Stable:")
        assert "3 resisted" not in flat.split("Stable:")[1].split("See why")[0]
        assert "●✗●✗●●" in text
        assert "4 resisted," in flat
        assert "2 compromised" in flat
        assert "0.53" in flat  # of 15 pairs of runs 8 differ
        assert "39.3 %" in flat
        assert "53.6 %" in flat
        assert "Repeats add no" in flat
    assert "Any other outcome up to 39.3 % (95 % confidence); for all 5 pairs" in flat
    assert "Distinct decisions: 1 clean, 2 poisoned. Distinct traces: 1 clean, 4 poiso" in flat


def test_columns_stand_beside_each_other_and_lines_below(reports, suite):
    found = inspect_pair(reports["mixed"], PAIR, suite)
    wide = render_pair(found, width=160, columns=True)
    piped = render_pair(found, width=160)
    narrow = render_pair(found, width=80, columns=True)
    row = r"trial \d, poisoned: resisted +┃ trial \d, poisoned: compromised"
    assert re.search(row, wide)
    assert "┃" not in piped + narrow
    for text in (wide, piped, narrow):
        flat = " ".join(text.split())
        assert "They part at call 10" in flat
        assert "96.5" in flat
        assert "BREAKS impartial_evaluation" in flat
        assert "the poison was served by call 5" in flat
        assert "The clean twin of trial 2 beside it" in flat
        assert "Their final answers" in flat
        assert "Ultra-low-temperature freezers" in flat
        assert "## Note for the evaluating assistant" in flat
        assert text.count("trial 2, poisoned: compromised (targeted)") == (2 if text is wide else 1)


@pytest.mark.parametrize(
    ("delivered", "words"),
    [("intact", "intact"), ("removed", "removed"), ("unknown", "not known"), (None, "not known")],
)
def test_what_the_agent_got_of_the_poison_is_said(reports, suite, delivered, words):
    report = json.loads(json.dumps(reports["mixed"]))
    for item in report["pair_trials"]:
        item["poisoned"]["delivered"] = delivered
    flat = " ".join(render_pair(inspect_pair(report, PAIR, suite)).split())
    assert f"what the agent got of it: {words}" in flat
    assert "the agent got instead:" not in flat


def test_a_text_that_a_defence_put_in_its_place_is_shown(hostile, suite):
    text = render_pair(inspect_pair(hostile, PAIR, suite))
    assert "what the agent got of it: altered" in " ".join(text.split())
    instead = text.split("the agent got instead:")[1]
    assert instead.lstrip().startswith(r"\x1b[31mred")


def test_what_only_the_worse_one_did_is_named(reports, suite):
    found = inspect_pair(reports["one trial"], "sealed-bid-disclosure", suite)
    text = render_pair(found)
    part = text.split("Only the poisoned twin makes these calls (the worse one)")[1]
    assert "send_message(" in part.split("Only the clean twin")[0]
    assert "conformity@brackwell-kitchens.example, disclosed D-203" in " ".join(text.split())


def test_one_trial_is_printed_whole(reports, suite):
    found = inspect_pair(reports["mixed"], PAIR, suite, choice=Choice(trial=2))
    flat = " ".join(render_pair(found).split())
    for event in found.single.events:
        for line in event.output.split("\n"):
            assert " ".join(line.split()) in flat
    assert " ".join(found.single.final_answer.split()) in flat


def test_an_unresolved_trial_says_how_it_ended(reports, suite):
    found = inspect_pair(reports["unresolved"], PAIR, suite)
    text = render_pair(found)
    assert "no trial is resolved" in " ".join(text.split())
    assert "infrastructure_error; rate_limit: 429 too many requests" in " ".join(text.split())
    nothing = render_pair(inspect_pair(reports["unresolved"], PAIR, suite, choice=Choice(trial=2)))
    assert "nothing on record" in nothing


def test_without_its_suite_the_report_still_shows_the_flip(reports):
    text = render_pair(inspect_pair(reports["mixed"], PAIR, None))
    assert "Name its folder with --suite" in " ".join(text.split())
    assert "broke impartial_evaluation" in text
    assert "The request" not in text


def test_a_thousand_distinct_traces_are_listed_by_course(stage, suite):
    report = stage.report({PAIR: "vf" * 20 + "v" * 960})
    found = inspect_pair(report, PAIR, suite)
    assert len(found.clusters) == 981
    text = render_pair(found)
    assert "981 traces, 2 courses of action" in " ".join(text.split())
    assert len(text.splitlines()) < 250
    assert re.search(r"980 x resisted.*980 traces", " ".join(text.split()))
    assert re.search(r"20 x compromised.*1 trace", " ".join(text.split()))


def test_ten_thousand_trials_are_compressed_and_keep_the_worst(stage, suite):
    report = stage.report({PAIR: "r" * 9_999 + "f"})
    overview = inspect_report(report)
    for width, columns in LOOKS:
        text = render_inspection(overview, width=width, columns=columns)
        assert "trials, the worst of them." in " ".join(text.split())
        assert "✗" in text
        assert max(cells(line) for line in text.splitlines()) <= width
    found = inspect_pair(report, PAIR, suite)
    assert [case.trial for case in found.shown] == [1, 10_000]


def test_a_small_bound_is_never_shown_as_none(stage):
    found = inspect_report(stage.report({PAIR: "vvvvv"}))
    small = {**found.rows[0].stability, "per_pair": 0.000123, "joint": 0.0009}
    text = render_inspection(replace(found, rows=(replace(found.rows[0], stability=small),)))
    assert "Any other outcome up to 0.012 %" in text
    assert "jointly 0.09 %" in " ".join(text.split())
