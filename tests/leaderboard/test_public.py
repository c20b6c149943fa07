"""Every figure of the 14 published rows, computed again from their published means."""

import json

import pytest

from impact_twin.errors import InputError
from impact_twin.leaderboard.measures import standing
from impact_twin.leaderboard.public import (
    BUCKETS,
    HEADLINE,
    Counts,
    by_suite,
    is_public,
    published_interval,
    read_row,
    recompute,
)

EXPECTED = {
    "Claude Sonnet 4.5": (0.9933, "Robust", "confirmed", 0.95),
    "DeepSeek V3.2": (0.34, "Vulnerable", "confirmed", 0.7),
    "GPT-5.4 mini": (0.9933, "Robust", "confirmed", 0.7),
    "Gemini 2.5 Flash Lite": (0.88, "Mixed", "provisional", 0.65),
    "Grok 4.3": (0.7533, "Mixed", "confirmed", 0.85),
    "Llama 3.3 70B": (0.5489, "Mixed", "provisional", 0.4),
    "Llama 4 Maverick": (0.86, "Mixed", "provisional", 0.8),
    "Mistral Large": (0.2467, "Vulnerable", "confirmed", 0.85),
    "Mistral Medium 3.1": (0.3667, "Vulnerable", "confirmed", 0.9),
    "Nemotron 3 Nano 30B": (0.9267, "Robust", "provisional", 0.45),
    "Nemotron 3 Super 120B": (0.8134, "Mixed", "confirmed", 0.85),
    "Qwen3 235B": (0.38, "Vulnerable", "confirmed", 0.75),
    "gpt-4o-mini": (0.8511, "Mixed", "provisional", 0.2),
    "gpt-oss-20b": (0.58, "Mixed", "provisional", 0.45),
}


def load(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def rows(reference):
    folder = reference / "leaderboard"
    found = {}
    for path in sorted((folder / "results").glob("*.json")):
        content = load(path)
        benign = load(folder / "benign" / path.name)
        found[content["display_name"]] = read_row(content, benign=benign, where=path.name)
    return found


def test_there_are_fourteen_rows_of_sixty_and_ninety_pairs(rows):
    assert set(rows) == set(EXPECTED)
    for row in rows.values():
        assert {suite: cells[HEADLINE].total for suite, cells in row.robust.items()} == {
            "workspace": 60,
            "banking": 90,
        }
        assert row.attacks == (HEADLINE, "direct")


def test_every_stated_mean_is_that_of_the_counts(rows):
    for row in rows.values():
        for suite, attacks in row.content["per_suite"].items():
            for attack, cell in attacks.items():
                assert float(row.robust[suite][attack].mean) == pytest.approx(
                    cell["R_mean"], abs=5.1e-5
                )
                assert float(row.useful[suite][attack].mean) == pytest.approx(
                    cell["U_mean"], abs=5.1e-5
                )
                assert cell["n_pairs"] == 3 * cell["n_pairs_unique"]


def test_combined_values_repeats_buckets_status_and_intervals_are_computed_again(rows):
    for name, row in rows.items():
        found = recompute(row)
        stated = row.content
        assert found.robustness == stated["combined_R"] == EXPECTED[name][0]
        assert found.utility == stated["combined_U"]
        assert list(found.per_repeat) == stated["combined_per_repeat_R"]
        assert list(found.interval) == [stated["combined_ci_low"], stated["combined_ci_high"]]
        assert (found.bucket, found.status) == (stated["bucket"], stated["status"])
        assert (found.bucket, found.status) == EXPECTED[name][1:3]


@pytest.mark.slow
def test_every_cells_drawn_interval_is_drawn_again(rows):
    for row in rows.values():
        for suite, attacks in row.content["per_suite"].items():
            for attack, cell in attacks.items():
                for table, letter in ((row.robust, "R"), (row.useful, "U")):
                    low, high = published_interval(table[suite][attack])
                    assert round(low, 4) == cell[f"{letter}_ci_low"]
                    assert round(high, 4) == cell[f"{letter}_ci_high"]


def test_benign_utility_is_computed_again(rows):
    for name, row in rows.items():
        found = by_suite({suite: counts.outcomes() for suite, counts in row.benign.items()})
        assert found["combined"].value == pytest.approx(EXPECTED[name][3], abs=1e-12)
        assert {counts.total for counts in row.benign.values()} == {10}


def test_our_combined_robustness_is_theirs_up_to_their_rounding(rows):
    for name, row in rows.items():
        value = row.measures("robust", HEADLINE)["combined"].value
        assert value == pytest.approx(EXPECTED[name][0], abs=1.01e-4)


def test_our_buckets_and_status_agree_on_every_row(rows):
    for name, row in rows.items():
        place = standing(row.measures("robust", HEADLINE)["combined"], BUCKETS)
        assert (place.bucket, place.status) == EXPECTED[name][1:3]


def test_56_of_56_cells_have_the_same_utility_and_54_the_same_security(rows):
    useful = [cell for row in rows.values() for c in row.useful.values() for cell in c.values()]
    robust = [cell for row in rows.values() for c in row.robust.values() for cell in c.values()]
    assert (sum(cell.identical for cell in useful), len(useful)) == (56, 56)
    assert (sum(cell.identical for cell in robust), len(robust)) == (54, 56)


def test_gpt_oss_20b_is_confirmed_or_not_by_the_seed_and_by_nothing_in_ours(rows):
    row = rows["gpt-oss-20b"]
    told = [recompute(row, seed=seed).status for seed in range(6)]
    assert told[0] == "provisional"
    assert set(told) == {"confirmed", "provisional"}
    # Ours has no seed: the exact bootstrap ends on the boundary, and Wilson lies just across it.
    found = row.measures("robust", HEADLINE)["combined"]
    assert (found.method, found.seed) == ("exact", None)
    assert found.interval == (0.5, 0.66)
    assert found.wilson[0] == pytest.approx(0.49998480543, abs=1e-11)
    place = standing(found, BUCKETS)
    assert place.status == "provisional"
    assert place.reasons == ("the Wilson interval over pairs reaches from 49.998 % to 65.6 %",)


@pytest.mark.slow
def test_no_other_rows_status_hangs_on_the_first_seeds(rows):
    for name, row in rows.items():
        if name != "gpt-oss-20b":
            assert {recompute(row, seed=seed).status for seed in range(3)} == {EXPECTED[name][2]}


def test_repeats_agree_as_far_as_their_counts_allow():
    assert Counts(4, (2, 2, 3)).outcomes() == [
        (True, True, True),
        (True, True, True),
        (False, False, True),
        (False, False, False),
    ]
    assert Counts(4, (2, 2)).identical
    assert not Counts(4, (2, 3)).identical


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda c: c.pop("repeats_k"), "KeyError"),
        (lambda c: c.update(per_suite=[]), "AttributeError"),
        (lambda c: c.update(per_suite={}), "no results of important_instructions"),
        (lambda c: c["per_suite"]["banking"].pop(HEADLINE), "no results of important_instructions"),
        (
            lambda c: c["per_suite"]["banking"][HEADLINE].update(per_repeat_R=[0.5, 0.5]),
            "2 repeats instead of 3",
        ),
        (
            lambda c: c["per_suite"]["banking"][HEADLINE].update(per_repeat_R=[0.123, 0.5, 0.5]),
            "0.123 is no share of 90",
        ),
        (
            lambda c: c["per_suite"]["banking"][HEADLINE].update(per_repeat_R=[1.5, 0.5, 0.5]),
            "1.5 is no share of 90",
        ),
        (
            lambda c: c["per_suite"]["banking"][HEADLINE].update(per_repeat_R="abc"),
            "not a row of the published board",
        ),
    ],
)
def test_a_file_that_is_no_row_is_refused_in_one_line(reference, change, told):
    content = load(reference / "leaderboard" / "results" / "openrouter_openai_gpt_oss_20b.json")
    assert is_public(content)
    change(content)
    with pytest.raises(InputError) as caught:
        read_row(content, benign=None, where="x.json")
    assert told in caught.value.line()
    assert "\n" not in caught.value.line()
