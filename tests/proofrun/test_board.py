"""Ranking, duplicates, telling rows apart, and how the board is shown."""

import copy
import dataclasses
import html.parser
import json

import pytest
from proofrun_tamper import reseal

from impact_twin.proofrun.board import MOST_COMPARED, lower_bound, make_board
from impact_twin.proofrun.board_entry import RunClaim, make_entry, refused
from impact_twin.proofrun.board_markdown import board_markdown
from impact_twin.proofrun.board_page import POLICY, board_page
from impact_twin.proofrun.board_text import class_bar, render_board
from impact_twin.proofrun.board_words import board_json
from impact_twin.proofrun.bundle import bundle_bytes, make_bundle
from impact_twin.proofrun.tiers import CI_ATTESTED
from impact_twin.report.strips import cells
from impact_twin.statistics.compare import GroupCount
from impact_twin.statistics.intervals import wilson_with_unresolved
from impact_twin.statistics.table import OUTCOME_CLASSES

PAIRS = ("a", "b", "c", "d", "e")


@pytest.fixture(scope="session")
def entry(good_bytes, verifier):
    """The entry of a bundle that may be ranked."""
    return make_entry("good.json", good_bytes, verifier)


@pytest.fixture
def variant(entry):
    """Entries like the good one, with other counts or names."""

    def make(name, secure=20, unresolved=0, n=25, **changes):
        rate = {
            **entry.facts.rates["secure_utility"],
            "count": secure,
            "unresolved": unresolved,
            "n": n,
            "wilson": list(wilson_with_unresolved(secure, unresolved, n)),
        }
        each, left = divmod(secure, 5)
        pairs = {
            pair: GroupCount(each + (place < left), unresolved if pair == "e" else 0, n // 5)
            for place, pair in enumerate(PAIRS)
        }
        facts = dataclasses.replace(
            entry.facts,
            **{
                "rates": {**entry.facts.rates, "secure_utility": rate},
                "pairs": pairs,
                "report_digest": f"sha256:{name}",
                "starts": frozenset({(name,)}),
                "plan_digest": f"sha256:plan {name}",
                "bundle_digest": f"sha256:bundle {name}",
                "submitter": f"@{name}",
                "n": n,
                **changes,
            },
        )
        return dataclasses.replace(entry, name=name, digest=f"sha256:bundle {name}", facts=facts)

    return make


def names(rows):
    return [row.entry.name for row in rows]


def only(board):
    assert len(board.boards) == 1
    return board.boards[0]


def test_a_real_bundle_is_ranked_and_a_poor_one_is_listed_with_every_reason(
    entry, messy_bytes, verifier
):
    board = only(make_board([entry, make_entry("messy.json", messy_bytes, verifier)]))
    assert names(board.rows) == ["good.json"]
    assert board.rows[0].rank == 1
    assert [item.entry.name for item in board.unranked] == ["messy.json"]
    codes = {reason.code for reason in board.unranked[0].reasons}
    assert "few_trials" in codes
    report = json.loads(messy_bytes)["report"]
    assert board.unranked[0].facts.n == report["summary"]["aggregate"]["n"]


def test_a_file_that_does_not_verify_is_refused_with_the_check(good_bytes, verifier):
    found = make_entry("torn.json", good_bytes[:-20], verifier)
    assert found.facts is None
    assert "rung 1 (reading), check json" in found.problem
    assert make_board([found]).refused == (found,)
    assert make_board([found]).boards == ()


def test_rank_follows_the_lower_bound_and_not_the_share(variant):
    few, many = variant("few", secure=5, n=5), variant("many", secure=90, n=100)
    board = only(make_board([few, many]))
    assert lower_bound(many.facts) > lower_bound(few.facts)
    assert names(board.rows) == ["many", "few"]


def test_hiding_a_failure_as_unresolved_does_not_raise_the_rank(variant):
    shown, hidden = variant("shown", 18), variant("hidden", 18, unresolved=2)
    board = only(make_board([hidden, shown]))
    assert [row.rank for row in board.rows] == [1, 1]


def test_equal_lower_bounds_share_a_rank_and_the_next_one_is_skipped(variant):
    board = only(make_board([variant("c", 10), variant("a", 20), variant("b", 20)]))
    assert [(row.rank, row.entry.name) for row in board.rows] == [(1, "a"), (1, "b"), (3, "c")]


def test_the_order_of_files_changes_nothing(variant):
    entries = [variant("a", 20), variant("b", 15), variant("c", 15), refused("d", "no")]
    assert make_board(entries) == make_board(entries[::-1])


def test_rows_are_told_apart_only_when_they_differ_enough(variant):
    board = only(make_board([variant("high", 25), variant("near", 23), variant("low", 2)]))
    assert [row.alike for row in board.rows] == [(2,), (1,), ()]
    assert board.comparisons == 3
    assert board.confidence_each == pytest.approx(1 - 0.05 / 3)


def test_more_rows_make_each_comparison_stricter(variant):
    two = [variant("high", 24), variant("low", 16)]
    assert only(make_board(two)).rows[0].alike == ()
    crowd = [variant(f"x{place}", 20) for place in range(12)]
    board = only(make_board([*two, *crowd]))
    low = names(board.rows).index("low") + 1
    assert low in board.rows[0].alike


def test_too_many_rows_are_not_all_compared_and_the_board_says_so(variant):
    board = only(make_board([variant(f"r{place:02}", 20) for place in range(MOST_COMPARED + 2)]))
    assert [row.alike is None for row in board.rows[-3:]] == [False, True, True]
    assert any("Only the first" in note for note in board.notes)


def test_other_suites_stand_on_other_boards(variant):
    board = make_board([variant("a"), variant("b", suite_digest="sha256:other")])
    assert [names(found.rows) for found in board.boards] in ([["a"], ["b"]], [["b"], ["a"]])
    assert all(found.comparisons == 0 for found in board.boards)


def test_the_same_bundle_twice_is_ranked_once(entry):
    board = only(make_board([entry, dataclasses.replace(entry, name="again.json")]))
    assert names(board.rows) == ["again.json"]
    assert board.unranked[0].reasons[0].code == "same_bundle"


def test_a_report_in_another_envelope_is_ranked_once_and_both_submitters_are_named(
    good, verifier, entry
):
    stolen = make_bundle(good["report"], submitter="@thief", source="https://example.org/x")
    copy = make_entry("copy.json", bundle_bytes(stolen), verifier)
    assert copy.digest != entry.digest
    board = only(make_board([entry, copy]))
    assert len(board.rows) == 1
    assert board.unranked[0].reasons[0].code == "same_report"
    assert any("@thief" in note and "@somebody" in note for note in board.notes)


def test_a_copy_whose_claims_were_changed_is_ranked_once(good, verifier, entry):
    stolen = copy.deepcopy(good["report"])
    stolen["plan"]["created"] = "2026-01-01T00:00:00Z"
    stolen["identity"]["agent"]["name"] = "better"
    bundle = make_bundle(stolen, submitter="@thief", source="https://example.org/x")
    made = make_entry("z.json", bundle_bytes(reseal(bundle, level="figures")), verifier)
    assert made.facts is not None
    board = only(make_board([entry, made]))
    assert names(board.rows) == [entry.name]
    assert board.unranked[0].reasons[0].code == "same_runs"


def test_the_last_unit_of_a_figure_decides_no_rank(variant):
    first = variant("b")
    rates = {name: dict(rate) for name, rate in first.facts.rates.items()}
    low, high = rates["secure_utility"]["wilson"]
    rates["secure_utility"]["wilson"] = [low + 1e-12, high]
    board = only(make_board([first, variant("a", rates=rates)]))
    assert [row.rank for row in board.rows] == [1, 1]


def test_of_copies_the_one_with_the_stronger_tier_is_ranked(variant):
    weak = variant("a", report_digest="sha256:same")
    strong = variant("b", report_digest="sha256:same", tier=CI_ATTESTED)
    assert names(only(make_board([weak, strong])).rows) == ["b"]


def test_several_runs_of_one_agent_are_noticed(variant):
    entries = [variant("a", submitter="@Who"), variant("b", submitter="@who"), variant("c")]
    notes = only(make_board(entries)).notes
    assert [note for note in notes if "2 runs of the agent" in note and "a, b" in note]


def test_one_plan_behind_two_reports_is_noticed(variant):
    entries = [variant("a", plan_digest="sha256:p"), variant("b", plan_digest="sha256:p")]
    assert any("share one plan" in note for note in only(make_board(entries)).notes)


def test_runs_of_a_repository_are_counted_whatever_the_case_of_its_name(variant):
    entries = [
        variant("a", run=RunClaim("Owner/name", False, "7", 12)),
        variant("b", run=RunClaim("owner/NAME", True, "8", 57)),
        variant("c", run=None),
    ]
    (found,) = make_board(entries).repositories
    assert (found.bundles, found.runs, found.run_number, found.certified) == (2, 2, 57, False)
    assert "57" in render_board(make_board(entries))


@pytest.mark.parametrize(
    "classes",
    [
        {"resisted": 1},
        {"resisted": 10_000, "compromised": 1, "swayed": 1},
        {"compromised": 7, "swayed": 7, "derailed": 7},
        dict.fromkeys(OUTCOME_CLASSES, 3),
    ],
)
@pytest.mark.parametrize("width", [9, 12, 40])
def test_a_bar_is_full_and_hides_no_class(classes, width):
    bar = class_bar(classes, width)
    assert sum(count for _, count in bar) == width
    assert {name for name, _ in bar} == set(classes)
    assert all(count >= 1 for _, count in bar)


def test_a_bar_of_nothing_is_empty():
    assert class_bar({}, 40) == []


HOSTILE = "\x1b[31m\u202e</td><script>alert(1)</script>|`@all http://x.example \u8a55" + "W" * 300


@pytest.fixture
def hostile(variant):
    """A board whose every text is hostile."""
    entries = [
        variant(HOSTILE, agent=HOSTILE, submitter=HOSTILE, suite_id=HOSTILE, missing=(HOSTILE,)),
        variant("other", run=RunClaim(HOSTILE, False, "1", None), suite_id=HOSTILE),
        refused(f"x{HOSTILE}.json", HOSTILE),
    ]
    return make_board(entries, [HOSTILE])


@pytest.mark.parametrize("width", [40, 60, 80])
@pytest.mark.parametrize("plain", [True, False])
def test_the_terminal_keeps_to_its_width_and_escapes_what_files_say(hostile, width, plain):
    text = render_board(hostile, width=width, ascii=plain)
    assert max(cells(line) for line in text.splitlines()) <= width
    assert "\x1b" not in text
    assert "\u202e" not in text
    if plain:
        assert text.replace("\u8a55", "").isascii()


def test_the_terminal_shows_rates_counts_labels_tier_and_who_is_alike(entry, variant):
    text = render_board(make_board([entry, variant("other", 20)]), ascii=True)
    rates = entry.facts.rates
    for name in ("secure_utility", "benign_utility", "attack_success"):
        assert name.replace("_", " ") in text
        assert f"{rates[name]['count']}/{rates[name]['n']}" in text
    for word in ("self-attested", "variable", "n 25", "told apart", "Bonferroni"):
        assert word in text


class Page(html.parser.HTMLParser):
    """Collects tags and their attributes."""

    def __init__(self):
        super().__init__()
        self.tags = []
        self.text = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


def test_the_page_loads_nothing_and_takes_no_text_for_markup(hostile):
    page = board_page(hostile)
    parser = Page()
    parser.feed(page)
    tags = {tag for tag, _ in parser.tags}
    assert not tags & {"script", "img", "link", "iframe", "object", "form", "base"}
    assert "<script>alert(1)</script>" in "".join(parser.text)
    assert "\x1b" not in page
    assert "\u202e" not in page
    for tag, attrs in parser.tags:
        assert not [name for name in attrs if name.startswith("on") or name == "style"]
        assert tag != "a"
        assert attrs.get("href", "#").startswith("#")
    (policy,) = [attrs["content"] for _, attrs in parser.tags if "http-equiv" in attrs]
    assert policy == POLICY == "default-src 'none'; style-src 'unsafe-inline'"


def test_the_page_is_accessible(entry, variant):
    page = board_page(make_board([entry, variant("other", 20), refused("x.json", "torn")]))
    parser = Page()
    parser.feed(page)
    assert ("html", {"lang": "en"}) in parser.tags
    ids = [attrs["id"] for _, attrs in parser.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for tag, attrs in parser.tags:
        if tag == "svg":
            assert attrs.get("role") == "img" or attrs.get("aria-hidden") or "x" in attrs
        if tag == "th":
            assert attrs["scope"] in ("row", "col")
    assert "prefers-color-scheme: dark" in page
    for name in ("compromised", "resisted"):
        assert f"#c-{name}" in page  # a shape, not a colour alone


def test_markdown_takes_no_text_for_markup(hostile):
    text = board_markdown(hostile)
    assert "\x1b" not in text
    assert "\u202e" not in text
    prose = "".join(text.split("`")[::2])
    assert "<" not in prose
    assert "@" not in prose
    assert "http://" not in prose
    rows = [line for line in text.splitlines() if line.startswith("| 1 |")]
    assert len({line.count("|") for line in rows}) == 1


def test_json_holds_all_of_it(entry, variant, messy_bytes, verifier):
    board = make_board(
        [entry, variant("other", 20), make_entry("m", messy_bytes, verifier), refused("x", "torn")]
    )
    found = json.loads(json.dumps(board_json(board), allow_nan=False))
    assert found["kind"] == "impact-twin/board"
    (suite,) = found["boards"]
    assert [row["file"] for row in suite["rows"]] == names(only(board).rows)
    first = next(row for row in suite["rows"] if row["file"] == "good.json")
    assert first["rates"] == {name: dict(rate) for name, rate in entry.facts.rates.items()}
    assert first["bundle"] == entry.digest
    assert suite["not_ranked"][0]["reasons"]
    assert found["refused"] == [{"file": "x", "bundle": None, "problem": "torn"}]


def test_an_empty_board_says_so():
    board = make_board([])
    assert "no bundle" in render_board(board)
    assert "no bundle" in board_page(board)
    assert "no bundle" in board_markdown(board)
