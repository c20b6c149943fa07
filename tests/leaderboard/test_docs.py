"""The figures of docs/leaderboard.md are those that the commands give."""

from pathlib import Path

import pytest

from impact_twin.leaderboard.board import boards, load_rows
from impact_twin.leaderboard.coverage import coverage_check, table
from impact_twin.leaderboard.plan import make_plan
from impact_twin.leaderboard.protocol import load_protocol
from impact_twin.leaderboard.public import recompute
from impact_twin.leaderboard.render import cells, columns, markdown_table, published_table
from impact_twin.leaderboard.scoring import read_sources

PAGE = (Path(__file__).parents[2] / "docs" / "leaderboard.md").read_text(encoding="utf-8")


def after(mark):
    """The lines of the table that follows a mark."""
    lines = PAGE.split(f"<!-- {mark} -->\n", 1)[1].lstrip("\n").splitlines()
    return lines[: next(at for at, line in enumerate(lines) if not line.startswith("|"))]


def files(reference, *folders):
    return [
        path for name in folders for path in sorted((reference / "leaderboard" / name).iterdir())
    ]


def public_table(reference):
    board = boards(load_rows(files(reference, "results", "benign"))["rows"])[0]
    heads = columns(board)
    rows = [cells(board, row, at) for at, row in enumerate(board.rows, start=1)]
    both = published_table(board)
    kept = [heads.index(name) for name in ("Model", "R", "U", "U_benign", "Bucket")]
    left = [[line[at] for at in kept] for line in (heads, *rows)]
    return [one + other[1:] for one, other in zip(left, both, strict=True)]


def test_the_public_rows_are_those_that_score_gives(reference):
    assert after("public rows") == markdown_table(public_table(reference))


def test_the_coverage_check_is_that_of_the_command(reference):
    found = coverage_check(*read_sources(files(reference, "results", "full_coverage")))
    assert after("public coverage") == markdown_table(table(found))


def test_three_of_six_seeds_confirm_gpt_oss_20b(reference):
    _, rows = read_sources(
        [path for path in files(reference, "results") if "gpt_oss_20b" in path.name]
    )
    told = [recompute(rows[0], seed=seed).status for seed in range(6)]
    assert told.count("confirmed") == told.count("provisional") == 3
    assert "of seeds 0 to 5, three each way" in PAGE


@pytest.mark.parametrize(
    ("benign", "runs"), [(False, "needs 900 runs"), (True, "960 with `--benign`")]
)
def test_the_number_of_runs_is_the_plans(benign, runs):
    assert str(make_plan(load_protocol()).total(benign=benign)) in runs
    assert runs in PAGE


def test_the_protocols_settings_are_those_of_the_file():
    protocol = load_protocol()
    for shown in (
        f"agentdojo {protocol.agentdojo}, dspy {protocol.dspy}",
        f"{protocol.max_iters} turns",
        f"temperature {protocol.temperature:g}, at most {protocol.max_tokens:,} tokens",
        f"k = {protocol.repeats}",
        f"{protocol.clock:%Y-%m-%d %H:%M}",
        f"{protocol.limits.pair_seconds} s a pair",
        f"{protocol.limits.request_seconds} s a request, {protocol.limits.attempts} tries",
    ):
        assert shown in PAGE
