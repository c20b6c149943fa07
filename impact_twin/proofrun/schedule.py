"""Rung 5: whether the cases ran in the planned order, and whether some are copies of others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from impact_twin.procurement.model import JSON
from impact_twin.proofrun.checks import Material, RefusedError, case_name
from impact_twin.proofrun.digests import planned_cases
from impact_twin.report.observations import CaseRow, iter_cases
from impact_twin.trials.runner import MAX_CONCURRENCY

# Two cases of one pair and twin that took this long, or made so many requests, never agree in every
# start and duration to the microsecond by chance; others might, one in some thousand.
_TELLING_S = 0.5
_TELLING_CALLS = 2
# The same of both cases of a pair-trial, unless they fail at once.
_TELLING_PAIR_S = 0.002


def check_schedule(material: Material) -> str:
    """Refuse positions that the plan and the number of resumptions can't give.

    Cases start in plan order; each resumption goes through what is left in plan order again.
    """
    report = material.report
    run = report["identity"]["run"]
    planned = {key: place for place, key in enumerate(planned_cases(report))}
    started: dict[int, int] = {}
    missing = []
    for row in iter_cases(report):
        place = planned[row.pair, row.trial, row.twin]  # type: ignore[index]
        position = row.case["position"]
        if position is None:
            missing.append(place)
        elif position in started:
            raise RefusedError(f"two cases have the position {position}")
        elif not run["resumed"] and position != place:
            raise RefusedError(
                f"{case_name(row.pair, row.trial, row.twin)}: its position is {position}, but the "
                f"plan starts it at {place} and the run was never resumed"
            )
        else:
            started[position] = place
    _check_sessions([started[position] for position in sorted(started)], len(run["concurrency"]))
    _check_looks(run["looks"], report["summary"]["sequential"])
    if run["until"] is not None:
        cases_a_trial = 2 * len(report["plan"]["pairs"])
        _check_every_look(run["looks"], min(missing, default=len(planned)) // cases_a_trial)
    if missing:
        _check_missing(sorted(missing), max(started.values(), default=-1), run)
    return f"{len(started)} cases started in the planned order, {len(missing)} never started"


def check_copies(material: Material) -> str:
    """Refuse pair-trials that are copies of others: the same starts and durations."""
    seen: dict[tuple[JSON, ...], int] = {}
    rows = list(iter_cases(material.report))
    for clean, poisoned in zip(rows[::2], rows[1::2], strict=True):
        for key in _fingerprints(clean, poisoned):
            other = seen.setdefault(key, clean.trial)
            if other != clean.trial:
                raise RefusedError(
                    f"{case_name(clean.pair, clean.trial)} repeats trial {other}: "
                    "started at the same time, for as long"
                )
    return "no pair-trial repeats another's times"


def _check_sessions(order: list[int], sessions: int) -> None:
    passes = 1 + sum(later < earlier for earlier, later in pairwise(order))
    if order and passes > sessions:
        raise RefusedError(
            f"the positions take {passes} passes over the plan, but the run had {sessions} sessions"
        )


def _check_looks(looks: list[Mapping[str, JSON]], found: Mapping[str, JSON] | None) -> None:
    """Refuse looks that a stop rule does not take; what each saw is a figure of the summary."""
    for look, seen in zip(looks, [] if found is None else found["looks"], strict=True):
        said = f"{found['rule']}: {seen['verdict']} after trial {seen['trial']}" if found else ""
        if look["reason"] != (said if look["stop"] else ""):
            raise RefusedError(f"the look after trial {look['trial']} gives another reason")


def _check_every_look(looks: list[Mapping[str, JSON]], whole: int) -> None:
    """Refuse a run with a stop rule that was not asked after each of its first whole trials."""
    asked = [look["trial"] for look in looks]
    # A run that was cut off may have ended between a trial and its look.
    if asked != list(range(1, len(asked) + 1)) or len(asked) < whole - 1:
        raise RefusedError(
            f"the stop rule was asked after {len(asked)} trials, but {whole} were run with it"
        )


def _check_missing(missing: list[int], last: int, run: Mapping[str, JSON]) -> None:
    """Refuse cases that never started when nothing stopped the run."""
    if not run["stopped"]:
        raise RefusedError(
            f"{len(missing)} cases never started, but nothing says why the run stopped"
        )
    # A case before the last one that is recorded was under way when the run was cut off.
    under_way = sum(place < last for place in missing)
    if under_way > MAX_CONCURRENCY:
        raise RefusedError(
            f"{under_way} cases before the last one that ran are missing; at most "
            f"{MAX_CONCURRENCY} can have been under way"
        )


def _fingerprints(clean: CaseRow, poisoned: CaseRow) -> Iterator[tuple[JSON, ...]]:
    ran = [row for row in (clean, poisoned) if row.case["attempts"]]
    if len(ran) == 2 and sum(row.case["duration_s"] for row in ran) >= _TELLING_PAIR_S:
        yield ("pair-trial", clean.pair, *(_when(row) for row in ran))
    for row in ran:
        calls = row.case["model_calls"]
        long = row.case["termination"] == "completed" and row.case["duration_s"] >= _TELLING_S
        if long or len(calls) >= _TELLING_CALLS:
            times = tuple((call["started"], call["duration_s"]) for call in calls)
            yield ("case", row.pair, row.twin, _when(row), times)


def _when(row: CaseRow) -> tuple[tuple[float, float], ...]:
    return tuple((item["started"], item["duration_s"]) for item in row.case["attempts"])
