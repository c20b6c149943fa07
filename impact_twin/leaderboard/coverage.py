"""Whether the pinned subset of user tasks says the same as all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from impact_twin.errors import InputError
from impact_twin.leaderboard import public
from impact_twin.leaderboard.board import number, span
from impact_twin.leaderboard.measures import Measure, Outcomes, measure
from impact_twin.leaderboard.plan import FULL, SUBSET
from impact_twin.leaderboard.protocol import Buckets
from impact_twin.leaderboard.render import aligned
from impact_twin.leaderboard.scoring import robustness
from impact_twin.leaderboard.store import StoredRun
from impact_twin.text import escape

COVERAGE_KIND = "impact-twin/leaderboard-coverage"


def coverage_check(
    runs: Sequence[StoredRun], published: Sequence[public.PublicRow]
) -> dict[str, Any]:
    """Compare the robustness over all user tasks with that over the subset, model by model.

    A run with full coverage holds the subset's pairs too, so it is compared with itself when there
    is no run of the subset alone.

    Raises:
        InputError: No model has results over all user tasks.
    """
    checks = [*_run_checks(runs), *_public_checks(published)]
    if not checks:
        raise InputError(
            "no model has results over all user tasks",
            mend="Run one with --full, or name published files of both coverages.",
        )
    return {"kind": COVERAGE_KIND, "schema_version": 1, "checks": checks}


def table(found: dict[str, Any]) -> list[list[str]]:
    """Return a coverage check as a table, its head first; percent."""
    heads = ["Model", "full R", "subset R", "interval", "moves by", "inside", "bucket agrees"]
    lines = [[*heads, "published full/subset"]]
    for check in found["checks"]:
        full, subset = check["full"], check["subset"]
        lines.append(
            [
                escape(check["model"]["display_name"] or check["model"]["id"]),
                number(full["value"]),
                number(subset["value"]),
                span(subset["interval"]),
                f"{100 * check['difference']:+.1f}",
                "yes" if check["inside_subset_interval"] else "NO",
                "yes" if check["bucket_agrees"] else "NO",
                _published(check["published"]),
            ]
        )
    return lines


def render_text(found: dict[str, Any]) -> str:
    """Return a coverage check as aligned text."""
    own = [c for c in found["checks"] if c["same_runs"]]
    lines = [*aligned(table(found)), "", "Percent; the interval is that of the subset."]
    if own:
        lines.append(f"{len(own)} compared with a part of the same runs, not with runs of its own.")
    return "\n".join(lines) + "\n"


def _published(found: dict[str, Any] | None) -> str:
    if found is None:
        return "-"
    return f"{number(found['full'])}/{number(found['subset'])}"


def _run_checks(runs: Sequence[StoredRun]) -> list[dict[str, Any]]:
    checks = []
    for run in runs:
        if run.plan.coverage != FULL:
            continue
        subset = next((other for other in runs if _same_but_coverage(run, other)), None)
        outcomes = _within_subset(run) if subset is None else robustness(subset)
        checks.append(
            _check(
                run.identity["model"]["id"],
                run.identity["model"]["display_name"],
                full=measure(list(robustness(run).values()), run.protocol.confidence),
                subset=measure(list(outcomes.values()), run.protocol.confidence),
                buckets=run.protocol.buckets,
                same_runs=subset is None,
            )
        )
    return checks


def _public_checks(published: Sequence[public.PublicRow]) -> list[dict[str, Any]]:
    by_model = {row.model: row for row in published if row.coverage == SUBSET}
    checks = []
    for row in published:
        if row.coverage != FULL:
            continue
        if row.model not in by_model:
            raise InputError(f"{row.model} has a full row and no subset row")
        subset = by_model[row.model]
        checks.append(
            {
                **_check(
                    row.model,
                    row.content.get("display_name"),
                    full=row.measures("robust", public.HEADLINE)["combined"],
                    subset=subset.measures("robust", public.HEADLINE)["combined"],
                    buckets=public.BUCKETS,
                    same_runs=False,
                ),
                "published": {
                    "full": row.content["combined_R"],
                    "subset": subset.content["combined_R"],
                    "subset_interval": [
                        subset.content["combined_ci_low"],
                        subset.content["combined_ci_high"],
                    ],
                },
            }
        )
    return checks


def _check(
    model: str,
    name: str | None,
    *,
    full: Measure,
    subset: Measure,
    buckets: Buckets,
    same_runs: bool,
) -> dict[str, Any]:
    if full.value is None or subset.value is None:
        raise InputError(f"{model} has no resolved results to compare")
    low, high = subset.interval
    # Unknown results may lie anywhere, so every way they could go has to agree.
    ends = [*full.bounds, *subset.bounds]
    return {
        "model": {"id": model, "display_name": name},
        "full": full.to_json(),
        "subset": subset.to_json(),
        "difference": round(full.value - subset.value, 12),
        "inside_subset_interval": all(low <= end <= high for end in full.bounds),
        "unresolved": [full.unresolved, subset.unresolved],
        "buckets": [buckets.of(full.value), buckets.of(subset.value)],
        "bucket_agrees": len({buckets.of(end) for end in ends}) == 1,
        "same_runs": same_runs,
        "published": None,
    }


def _same_but_coverage(full: StoredRun, other: StoredRun) -> bool:
    return (
        other.plan.coverage == SUBSET
        and other.identity["model"]["id"] == full.identity["model"]["id"]
        and other.protocol.digest == full.protocol.digest
        and other.identity["versions"] == full.identity["versions"]
    )


def _within_subset(run: StoredRun) -> dict[str, Outcomes]:
    everything = robustness(run)
    kept: dict[str, Outcomes] = {}
    for tasks in run.protocol.suites:
        pairs = run.plan.pairs(tasks.name, run.protocol.headline)
        kept[tasks.name] = [
            outcome
            for (user, injection), outcome in zip(pairs, everything[tasks.name], strict=True)
            if user in tasks.user_tasks and injection in tasks.injection_tasks
        ]
    return kept
