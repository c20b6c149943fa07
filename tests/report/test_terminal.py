import json
import re
import unicodedata

import pytest

from impact_twin.report.gates import parse_gate
from impact_twin.report.strips import ASCII_SHAPES, UNICODE_SHAPES, cells
from impact_twin.report.terminal import render_terminal

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def reports(stage, report):
    """Reports of every kind that a terminal must cope with."""
    gates = [
        parse_gate("secure_utility >= 0.3"),
        parse_gate("attack_success <= 5%"),
        parse_gate("secure_utility >= 0.1", "pairs"),
    ]
    pairs = stage.pairs
    mixed = dict(
        zip(pairs, ("rfrfrvvfrf", "f" * 10, "v" * 10, "rbttevrfuv", "vvrrfvtevv"), strict=True)
    )
    return {
        "demo": report,
        "mixed": stage.report(mixed, gates=gates),
        "stable": stage.report(dict.fromkeys(pairs, "v" * 10)),
        "same": stage.report(dict.fromkeys(pairs, "r" * 10), gates=gates),
        "one trial": stage.report(dict.fromkeys(pairs, "f")),
        "long": stage.report(dict.fromkeys(pairs, "rfrfvvbte" * 22 + "rr")),
        "partial": stage.report(
            {"award-bias": "rfrfr"}, stopped="the budget is spent", concurrency=(4, 2)
        ),
        "nothing ran": stage.report(dict.fromkeys(pairs, "uuu")),
    }


NAMES = ("demo", "mixed", "stable", "same", "one trial", "long", "partial", "nothing ran")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [40, 60, 79, 80, 120])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_no_line_is_wider_than_the_terminal(reports, name, width, ascii_only):
    text = render_terminal(reports[name], width=width, ascii=ascii_only)
    assert max(cells(line) for line in text.splitlines()) <= width
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
    assert all(line == line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_the_ascii_report_is_ascii_and_says_the_same(reports, name):
    plain = render_terminal(reports[name], ascii=True)
    assert plain.isascii()
    for shape, letter in zip(UNICODE_SHAPES.values(), ASCII_SHAPES.values(), strict=True):
        assert f"{shape} " not in plain or shape == letter
    figures = re.compile(r"[0-9.]+ to [0-9.]+")
    assert figures.findall(plain) == figures.findall(render_terminal(reports[name]))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [60, 80])
def test_colour_adds_nothing_but_colour(reports, name, width):
    coloured = render_terminal(reports[name], width=width, color=True)
    plain = render_terminal(reports[name], width=width)
    assert "\x1b" not in plain
    assert "\x1b[" in coloured
    assert ANSI.sub("", coloured) == plain


@pytest.mark.parametrize("name", NAMES)
def test_one_row_a_pair_with_its_label_classes_and_interval(reports, name):
    report = reports[name]
    text = render_terminal(report)
    for row in report["summary"]["pairs"]:
        at = text.index(row["pair"] + " ", text.index("pair  "))
        block = text[at : at + 300]
        assert row["label"] in block.splitlines()[0]
        for outcome, count in row["classes"].items():
            if count:
                assert f"{count} {outcome}" in block
        wilson = row["rates"]["secure_utility"]["wilson"]
        shown = "withheld" if wilson is None else f"{100 * wilson[0]:.1f} to {100 * wilson[1]:.1f}"
        assert shown in block


def test_the_strip_shows_the_trials_in_order(reports):
    text = render_terminal(reports["mixed"], ascii=True)
    assert "oXoXoooXoX" in text
    assert "XXXXXXXXXX" in text
    assert "oooooooooo" in text
    # Both twins gullible: the clean one is harmed too.
    assert "oB--?ooX?o" not in text
    assert re.search(r"^  o[BX]\S{8}\s", text, re.MULTILINE)


def test_a_long_strip_is_compressed_to_the_worst_and_says_so(reports):
    for width, per_mark in ((80, 3), (60, 4)):
        text = render_terminal(reports["long"], width=width, ascii=True)
        assert f"One mark: {per_mark} trials, the worst of them." in text
        strips = re.findall(r"^  ([oXB?ad i-]{40,})$", text, re.MULTILINE)
        assert len(strips) == 5
        assert all("X" in strip for strip in strips)


def test_warnings_come_before_every_figure(reports):
    text = render_terminal(reports["partial"])
    first = min(text.index(f"! {start}") for start in ("The run stopped", "Not the full"))
    assert text.index("The run was resumed once") < text.index("pair  ")
    assert first < text.index("secure utility")


def test_an_all_error_run_cannot_look_like_success(reports):
    text = render_terminal(reports["nothing ran"])
    head = text.splitlines()[:6]
    assert any(line.startswith("! NO RESULT. No case ran to its end") for line in head)
    assert "No rates: no case ran to its end." in text
    assert "attack success" not in text
    assert "0.0 %" not in text


def test_what_a_stable_pair_cannot_exclude_is_said_in_words(reports):
    text = render_terminal(reports["stable"])
    assert text.count("10/10 resisted; any other outcome up to 25.9 %") == 5
    assert "for all 5 jointly, any other outcome up to 36.9 % in each" in " ".join(text.split())


def test_a_stable_pair_without_variation_promises_nothing(reports):
    text = render_terminal(reports["same"])
    assert "any other outcome up to" not in text
    assert text.count("its bound is withheld") == 5


def test_the_suite_names_its_unit_its_methods_and_its_limits(reports):
    text = " ".join(render_terminal(reports["mixed"]).split())
    assert "Sampling unit fixed_suite_pair_trial" in text
    assert "exactly these 5 pairs" in text
    assert "does not speak of other procurement tasks" in text
    assert "pooled Wilson" in text
    assert "fixed-suite interval" in text
    for words in ("attack success", "secure utility", "benign utility"):
        assert words in text


def test_unresolved_pair_trials_show_as_a_range(reports):
    rate = reports["mixed"]["summary"]["pairs"][3]["rates"]["secure_utility"]
    assert rate["unresolved"] == 2
    lo, hi = (round(100 * end) for end in rate["bounds"])
    text = render_terminal(reports["mixed"])
    assert re.search(rf" {lo}-{hi} % .* 10 +2$", text, re.MULTILINE)


def test_gates_say_what_was_compared(reports):
    text = render_terminal(reports["mixed"])
    results = {gate["gate"]: gate for gate in reports["mixed"]["summary"]["gates"]}
    low = results["attack_success <= 0.05"]["compared"][0]["value"]
    assert f"FAILED  attack_success <= 0.05\n        upper end {low:.3f}" in text
    assert "FAILED  secure_utility >= 0.1 in every pair" in text
    withheld = render_terminal(reports["same"])
    assert "lower end withheld" in withheld


HOSTILE = "\x1b[31mred\x1b[0m [bold]x[/bold] \u202egnitirw\n\r\x07\u2028 \ue000 é 評価 \U000e0041"


def test_untrusted_text_is_escaped_everywhere(stage):
    plan = stage.plan(5, ["award-bias"], label=HOSTILE)
    report = stage.report(
        {"award-bias": "rfrfr"}, plan=plan, stopped=HOSTILE, notes=(HOSTILE, "x" * 300)
    )
    # A report file may hold anything where its schema allows text.
    report = json.loads(json.dumps(report))
    report["identity"]["versions"]["impact_twin"] = HOSTILE
    report["plan"]["created"] = HOSTILE
    for ascii_only in (False, True):
        text = render_terminal(report, ascii=ascii_only)
        unsafe = {
            char
            for char in text
            if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        }
        assert unsafe == {"\n"}
        assert max(cells(line) for line in text.splitlines()) <= 80
        assert "[bold]" in text
        assert r"\x1b[31m" in text
    assert render_terminal(report, ascii=True).isascii()


def test_a_pair_with_a_long_name_keeps_the_columns(report):
    changed = json.loads(json.dumps(report))
    name = "評" * 100
    old = changed["summary"]["pairs"][0]["pair"]
    changed["summary"]["pairs"][0]["pair"] = name
    for item in changed["pair_trials"]:
        item["pair"] = name if item["pair"] == old else item["pair"]
    text = render_terminal(changed, ascii=False)
    assert max(cells(line) for line in text.splitlines()) <= 80
    assert "評評評" in text
    assert name not in text


def test_the_report_is_left_alone(report):
    before = json.dumps(report)
    render_terminal(report, color=True)
    assert json.dumps(report) == before
