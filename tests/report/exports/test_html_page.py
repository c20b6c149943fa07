import html
import re
import time
import unicodedata
from html.parser import HTMLParser

import pytest

from impact_twin.report.evidence import suite_of_report
from impact_twin.report.html.page import html_page
from impact_twin.report.html.style import DARK, LIGHT, LOOKS
from impact_twin.statistics.table import OUTCOME_CLASSES

VOID = {"meta", "br"}
EVERY = {
    *("warnings", "headline", "forest", "trials", "classes", "diversity", "exposure", "order"),
    *("cost", "flips", "identity", "limits"),
}


class Outline(HTMLParser):
    """Tags in order, each closed where it should be."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def page_of(report):
    return html_page(report, suite_of_report(report))


def test_every_page_is_whole_and_has_every_section(each):
    report, suite = each
    text = html_page(report, suite)
    found = Outline(text)
    assert not found.open
    assert {attrs["id"] for tag, attrs in found.tags if tag == "section"} == EVERY
    ids = [attrs["id"] for _, attrs in found.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in found.tags:
        for key in ("href", "aria-labelledby"):
            for name in attrs.get(key, "").split():
                assert name.removeprefix("#") in ids
    for item in report["summary"]["warnings"]:
        assert item["code"] in text


def test_nothing_is_loaded_and_nothing_runs(each):
    report, suite = each
    text = html_page(report, suite)
    found = Outline(text)
    tags = {tag for tag, _ in found.tags}
    assert not tags & {
        "script",
        "img",
        "link",
        "iframe",
        "object",
        "embed",
        "form",
        "base",
        "a:href",
    }
    for tag, attrs in found.tags:
        assert not [key for key in attrs if key.startswith("on") or key in ("src", "style")]
        assert attrs.get("href", "#").startswith("#"), tag
    policy = next(
        attrs["content"]
        for tag, attrs in found.tags
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert "url(" not in text.split("</style>", maxsplit=1)[0]


def test_hostile_text_is_text(reports, hostile_text):
    text = page_of(reports["hostile"])
    for live in ("<script", "<img", "<svg onload", "<b>"):
        assert live not in text
    shown = "".join(Outline(text).words)
    assert "<script>document.title='broken'</script>" in shown
    assert r"\x1b[31mred\x07 \u202egnp.exe\u2066 \ue000 \ud800 שלום" in shown
    unsafe = {unicodedata.category(char) for char in text.replace("\n", "")}
    assert not unsafe & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    assert "\n- item\n# head" in text  # line breaks stay, in the boxes of texts
    assert html.escape(hostile_text[:20]) in text


def test_charts_and_tables_are_labelled(each):
    report, suite = each
    text = html_page(report, suite)
    for svg in re.findall(r"<svg[^>]*>(?:<title>)?", text):
        assert "<title>" in svg or "aria-" in svg or ' x="' in svg, svg
    tags = Outline(text).tags
    assert all("scope" in attrs for tag, attrs in tags if tag == "th")
    assert text.count("<table>") == text.count("<caption>") > 8


def test_the_heatmap_has_a_tile_for_every_trial(reports):
    for name in ("demo", "mixed", "long", "unequal"):
        report = reports[name]
        tiles = re.findall(r"<title>Trial (\d+): ([a-z_]+)</title></use>", page_of(report))
        expected = [
            (str(item["trial"]), item["outcome"])
            for pair in report["plan"]["pairs"]
            for item in report["pair_trials"]
            if item["pair"] == pair
        ]
        assert tiles == expected


def test_it_says_what_the_report_says(reports):
    report = reports["mixed"]
    text = page_of(report)
    for row in [*report["summary"]["pairs"], report["summary"]["aggregate"]]:
        for name in ("secure_utility", "attack_success", "benign_utility"):
            lo, hi = row["rates"][name]["wilson"] or (None, None)
            words = "withheld" if lo is None else f"{100 * lo:.1f} to {100 * hi:.1f} %"
            assert words in text
    assert "FAILED" in text
    assert "No result." in page_of(reports["nothing ran"])
    assert "withheld" in page_of(reports["same"])
    assert "The suite is not at hand" in page_of(reports["no suite"])


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    """WCAG 2 contrast ratio."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_words_have_contrast(colours):
    for ink in ("ink", "soft", "bad", "good", "mark"):
        for ground in ("paper", "band"):
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    assert contrast(colours["warn-ink"], colours["warn"]) >= 4.5


def test_tiles_have_contrast_and_differ_in_shape_and_colour():
    assert tuple(LOOKS) == OUTCOME_CLASSES
    assert len({look.shape for look in LOOKS.values()}) == len(LOOKS)
    assert len({look.tile for look in LOOKS.values()}) == len(LOOKS)
    for look in LOOKS.values():
        assert contrast(look.tile, look.mark) >= 4.5


def test_a_thousand_trials_take_under_five_seconds_and_five_megabytes(long_report):
    began = time.process_time()
    text = page_of(long_report)
    assert time.process_time() - began < 5
    assert len(text.encode()) < 5_000_000
    assert len(re.findall(r"<title>Trial \d+: ", text)) == 5_000


def test_ten_thousand_trials_share_tiles(stage):
    report = stage.report({"award-bias": "rfrfrvvrtr" * 1_000})
    text = page_of(report)
    assert len(text.encode()) < 5_000_000
    assert "A tile is 10 trials, the worst of them" in text
    assert len(re.findall(r"<title>Trials \d+ to \d+, the worst: compromised", text)) == 1_000


def test_texts_of_a_megabyte_and_a_thousand_traces_are_cut(stage, with_text):
    report = with_text(stage.report({"award-bias": "fv" + "v" * 998}), "<x>" * 350_000)
    text = page_of(report)
    assert len(text.encode()) < 5_000_000
    assert "characters)" in text
    # The 999 runs that resisted differ in their last words alone.
    assert "1,000 poisoned runs did: 1,000 traces, 2 courses of action" in text
    assert "more traces" in text


def test_looks_of_a_stop_rule_are_shown(reports):
    report = reports["mixed"]
    look = {
        **{"trial": 2, "count": 9, "unresolved": 1, "n": 10},
        **{"interval": [0.25, 0.98], "verdict": "continue"},
    }
    sequential = {"rule": "secure_utility >= <b>", "looks": [look, {**look, "verdict": "fails"}]}
    report = {**report, "summary": {**report["summary"], "sequential": sequential}}
    text = page_of(report)
    assert "secure_utility &gt;= &lt;b&gt;</bdi>: fails at trial 2" in text
    assert text.count("25.0 to 98.0 %") == 3
