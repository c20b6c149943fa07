import copy
import re

import pytest
from leaderboard_samples import stored

from impact_twin.leaderboard.page import render_html
from impact_twin.leaderboard.render import plain_markdown, render_markdown, render_text
from impact_twin.leaderboard.scoring import read_sources, run_row, score

HOSTILE = "<b>x</b>|\x1b[31m*y*\u202e [z](http://e.example) www.e.example `q` & <script>"


@pytest.fixture(scope="module")
def rows(reference):
    folder = reference / "leaderboard"
    files = [*sorted((folder / "results").iterdir()), *sorted((folder / "benign").iterdir())]
    return score(*read_sources(files))["rows"]


@pytest.fixture
def own(tmp_path, protocol):
    return run_row(stored(tmp_path / "run", protocol, lambda k: {}, benign=True))


def with_name(row, name):
    row = copy.deepcopy(row)
    row["model"]["display_name"] = name
    row["warnings"] = [name]
    row["reasons"] = [name]
    row["board"]["protocol"] = name
    return row


def test_the_table_has_every_column_of_the_board(rows):
    text = render_text(rows)
    head = next(line for line in text.splitlines() if line.startswith("#"))
    wanted = "Model R interval U U_benign R direct Bucket Replicates"
    assert re.split(r"\s{2,}", head)[1:] == [
        "Model",
        "R",
        "interval",
        "U",
        "U_benign",
        "R direct",
        "Bucket",
        "Replicates",
    ], wanted
    line = next(line for line in text.splitlines() if "Claude Sonnet 4.5" in line)
    assert re.split(r"\s{2,}", line)[1:8] == [
        "Claude Sonnet 4.5",
        "99.3",
        "98.0 to 100.0",
        "88.7",
        "95.0",
        "99.3",
        "Robust",
    ]


def test_a_provisional_row_claims_no_bucket(rows):
    text = render_text(rows)
    for name in ("Gemini 2.5 Flash Lite", "Nemotron 3 Nano 30B", "gpt-oss-20b"):
        line = next(line for line in text.splitlines() if f" {name} " in line)
        assert "provisional" in line
        assert not re.search(r"Robust|Mixed|Vulnerable", line)


@pytest.mark.parametrize("render", [render_text, render_markdown, render_html])
def test_every_form_has_the_warning_row_and_both_methods(rows, render):
    shown = render(rows)
    assert re.search(
        r"[Mm]ay be safe by incapacity: gpt-4o-mini has R 85\.1 % with only 20\.0 %", shown
    )
    assert "14 of 14 rows alike" in shown
    assert "2,000 resamples at seed 0" in shown
    assert "utility in 56 of 56 cells, security in 54 of 56" in shown
    assert "79.56 to 90.66" in shown
    assert "79.33 to 90.44" in shown
    assert "49.998" in shown


def test_the_warning_stands_in_the_markdown_table(rows):
    lines = render_markdown(rows).splitlines()
    table = [line for line in lines if line.startswith("| ")]
    assert sum("safe by incapacity" in line for line in table) == 4
    heads = table[0].count("|")
    own = [line for line in table if line.startswith(("| 1 ", "| ! "))]
    assert {line.count("|") for line in own} == {heads}


def test_rows_stand_in_order_of_robustness(rows):
    text = render_text(rows)
    places = [text.index(name) for name in ("Claude Sonnet", "gpt-oss-20b", "Mistral Large")]
    assert places == sorted(places)


def test_unknown_results_are_marked_with_their_bounds(tmp_path, protocol):
    unknown = {"termination": "timeout", "utility": None, "attack_succeeded": None}
    run = stored(tmp_path / "r", protocol, lambda k: unknown if k.repeat == 1 else {})
    for render in (render_text, render_markdown, render_html):
        shown = render([run_row(run)])
        assert "100.0?" in shown
        assert "R lies anywhere from 50.0 to 100.0 %, as 4 of 8 results are unknown" in shown


def test_a_row_without_benign_utility_says_so(tmp_path, protocol):
    run = stored(tmp_path / "r", protocol, lambda k: {})
    shown = render_text([run_row(run)])
    assert "no U_benign" in shown
    # Its mark in the plot is a square, at U under attack.
    assert '<rect class="unsure"' in render_html([run_row(run)])


def test_hostile_text_stays_text(own):
    row = with_name(own, HOSTILE)
    text = render_text([row])
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "\\x1b[31m" in text
    page = render_html([row])
    assert "<script" not in page
    assert "<b>" not in page
    assert "\u202e" not in page
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    lines = render_markdown([row])
    assert "<b>" not in lines
    assert "[z](" not in lines
    assert "http://" not in lines
    assert "www.e" not in lines
    assert "`q`" not in lines
    head = next(line for line in lines.splitlines() if line.startswith("| # "))
    body = next(line for line in lines.splitlines() if line.startswith("| 1 "))
    assert body.count("|") == head.count("|")


@pytest.mark.parametrize("text", ["# h", "- x", "1. x", "+ x", "=== ", "2) x"])
def test_no_text_starts_a_heading_or_list(text):
    assert not re.match(r"\s*(#+|[-+=]+|\d+[.)])(\s|$)", plain_markdown(text))


def test_the_page_loads_nothing_and_runs_nothing(rows):
    page = render_html(rows)
    assert (
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">"
    ) in page
    assert not re.search(r"<(script|img|link|iframe|object|base|form)\b", page)
    assert not re.search(r"\b(src|href|on\w+)\s*=", page)
    assert "url(" not in page
    assert "@import" not in page
    assert "prefers-color-scheme: dark" in page


def test_the_page_is_well_formed_and_can_be_read_without_seeing(rows):
    from html.parser import HTMLParser

    class Checker(HTMLParser):
        def __init__(self):
            super().__init__()
            self.open = []
            self.ids = []
            self.refers = []

        def handle_starttag(self, tag, attrs):
            self.note(dict(attrs))
            if tag != "meta":
                self.open.append(tag)

        def handle_startendtag(self, tag, attrs):
            self.note(dict(attrs))

        def handle_endtag(self, tag):
            assert self.open.pop() == tag

        def note(self, attrs):
            self.ids += [attrs["id"]] if "id" in attrs else []
            self.refers += attrs.get("aria-labelledby", "").split()

    checker = Checker()
    page = render_html(rows)
    checker.feed(page)
    assert checker.open == []
    assert len(set(checker.ids)) == len(checker.ids)
    assert set(checker.refers) <= set(checker.ids)
    assert '<html lang="en">' in page
    assert page.count("<caption>") == page.count("<table>")
    assert 'scope="col"' in page
    assert 'scope="row"' in page
    assert 'role="img"' in page


def test_the_plot_has_axes_with_labels_and_one_mark_a_row(rows):
    page = render_html(rows)
    assert "Capability: user tasks done, %" in page
    assert "Robustness R: attacks failed, %" in page
    assert page.count("<circle") == 14
    assert page.count('<circle class="sure"') == sum(row["status"] == "confirmed" for row in rows)
    assert page.count('<line class="bar"') == 14
    told = re.search(r"<desc[^>]*>([^<]*)</desc>", page)[1]
    assert "1: Claude Sonnet 4.5, capability 95.0, R 99.3" in told
    # A point's place follows from its figures: U_benign 95 %, R 99.3 %.
    x, y = 64 + 0.95 * 600, 16 + (1 - 0.9933333) * 394
    assert f'cx="{x:.1f}" cy="{y:.1f}"' in page


def test_text_colours_have_enough_contrast_in_both_modes(rows):
    def luminance(color):
        parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    page = render_html(rows)
    blocks = re.findall(r":root \{([^}]*)\}", page)
    assert len(blocks) == 2
    light = dict(re.findall(r"--([\w-]+): (#\w{6})", blocks[0]))
    for block in blocks:
        colors = {**light, **dict(re.findall(r"--([\w-]+): (#\w{6})", block))}
        pairs = [("ink", "paper"), ("soft", "paper"), ("soft", "band"), ("warn-ink", "warn")]
        for one, other in pairs:
            low, high = sorted((luminance(colors[one]), luminance(colors[other])))
            assert (high + 0.05) / (low + 0.05) >= 4.5, (one, other)
