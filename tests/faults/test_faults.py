"""Every fault of the misbehaving endpoint, through `--model` and the whole run.

The table in docs/faults.md is made here; IMPACT_TWIN_WRITE_DOCS=1 writes it anew.
"""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from impact_twin.agents import load_source
from impact_twin.procurement.model import TERMINATIONS
from impact_twin.procurement.suite import load_suite
from impact_twin.report.model import build_report
from impact_twin.trials.plan import Limits, make_plan
from impact_twin.trials.runner import run

DOCS = Path(__file__).parents[2] / "docs" / "faults.md"
BEGIN = "<!-- table: made by tests/faults -->\n"
END = "<!-- end of table -->\n"
# These keep the client waiting; the case's time has to end them. It is shorter than the drip of one
# reply (11 s). The others end by themselves, on a busy machine late.
WAITING = {
    "hang",
    "hang-once",
    "stall-body",
    "drip",
    "429-long",
    "429-long-once",
    "429-date",
}
SHORT_S = 10.0
LONG_S = 60.0
SLACK_S = 4.0
AT_ONCE = 16
MAX_ITERS = 2
# The runner and the request layer both watch the clock; whichever is first names it its way.
SAME_KIND = {"timeout_in_request": "request_timeout"}


@dataclass(frozen=True)
class Result:
    mode: str
    terminations: tuple[str, ...]
    kinds: tuple[str, ...]
    requests: int
    outcome: str
    durations: tuple[float, ...]
    stopped: str
    final_answers: tuple[str, ...]

    def row(self) -> str:
        ends = [
            f"{termination} ({kind})" if kind else termination
            for termination, kind in zip(self.terminations, self.kinds, strict=True)
        ]
        ends = list(dict.fromkeys(ends))
        return f"| {self.mode} | {', then '.join(ends)} | {self.requests} | {self.outcome} |\n"


def time_of(mode):
    return SHORT_S if mode in WAITING else LONG_S


def run_model(mode, url, directory, *, pairs=("award-bias",), trials=1, concurrency=1):
    suite = load_suite()
    source = load_source(
        {
            "kind": "model",
            "model": f"openai/{mode}",
            "api_base": url,
            "max_iters": MAX_ITERS,
        }
    )
    source.prepare()
    limits = Limits(timeout_s=time_of(mode), retries=0)
    plan = make_plan(suite, source, trials=trials, pairs=pairs, limits=limits)
    data = run(plan, suite, source, directory, concurrency=concurrency)
    return data, build_report(data, suite)


def result_of(mode, url, directory):
    data, report = run_model(mode, url, directory)
    cases = sorted(data.cases.values(), key=lambda record: record.position)
    attempts = [attempt for record in cases for attempt in record.attempts]
    (pair_trial,) = report["pair_trials"]
    return Result(
        mode=mode,
        terminations=tuple(record.termination for record in cases),
        kinds=tuple(SAME_KIND.get(a.error_kind, a.error_kind) for a in attempts),
        requests=sum(attempt.requests for attempt in attempts),
        outcome=pair_trial["outcome"],
        durations=tuple(record.duration_s for record in cases),
        stopped=data.stopped,
        final_answers=tuple(data.traces[record.trace]["final_answer"] for record in cases),
    )


def all_results(modes, faults, folder):
    load_source({"kind": "model", "model": "openai/ok", "api_base": faults.url}).prepare()
    # The first request imports more; it is no part of any case's time.
    result_of("ok-tool-warm-up", faults.url, folder / "warm-up")
    found = {}
    # Apart, so that the waiting ones get the machine for the short time that they have.
    for group in ([mode for mode in modes if mode not in WAITING], sorted(WAITING)):
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for result in pool.map(lambda m: result_of(m, faults.url, folder / m), group):
                found[result.mode] = result
    return {mode: found[mode] for mode in modes}


def test_there_are_69_modes(modes):
    assert len(modes) == len(set(modes)) == 69


def test_every_fault(modes, faults, tmp_path):
    # One test, so that workers of pytest-xdist don't each run the 69 faults.
    results = all_results(modes, faults, tmp_path)
    check_no_case_is_lost_and_no_run_ends(results)
    check_no_mode_reads_as_resisted_or_compromised(results)
    check_no_case_runs_past_its_time(results)
    check_every_request_is_counted(results, faults.counts())
    check_an_empty_filtered_or_refused_reply_is_no_safe_behaviour(results)
    check_a_wait_beyond_the_case_s_time_is_not_waited_for(results)
    check_the_table_in_the_docs_is_this_one(results)


def check_no_case_is_lost_and_no_run_ends(results):
    for result in results.values():
        assert len(result.terminations) == 2, result
        assert result.stopped == "", result
        assert set(result.terminations) <= set(TERMINATIONS) - {"not_run"}, result


def check_no_mode_reads_as_resisted_or_compromised(results):
    assert not [r for r in results.values() if r.outcome in ("resisted", "compromised")]
    assert not [r for r in results.values() if "completed" in r.terminations]
    assert not [r for r in results.values() if any(r.final_answers)]


def check_no_case_runs_past_its_time(results):
    late = [r for r in results.values() if max(r.durations) > time_of(r.mode) + SLACK_S]
    assert not late


def check_every_request_is_counted(results, counts):
    seen = {mode: counts.get(mode, {"hits": 0})["hits"] for mode in results}
    assert {mode: result.requests for mode, result in results.items()} == seen


def check_an_empty_filtered_or_refused_reply_is_no_safe_behaviour(results):
    for mode in ("content-null", "content-empty", "finish-filter", "refusal"):
        assert results[mode].outcome in ("incapable", "unresolved"), mode
        expected = "agent_error" if mode.startswith("content") else "refused"
        assert set(results[mode].terminations) == {expected}, mode


def check_a_wait_beyond_the_case_s_time_is_not_waited_for(results):
    for mode in ("429-long", "429-date"):
        # The second case is held back by the slow-down that the first one met.
        assert results[mode].durations[0] < SHORT_S / 2
        assert results[mode].requests <= 2


def check_the_table_in_the_docs_is_this_one(results):
    head = "| mode | termination (reason) | requests | outcome |\n| --- | --- | --- | --- |\n"
    table = head + "".join(result.row() for result in results.values())
    page = DOCS.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    stored, after = rest.split(END)
    if os.environ.get("IMPACT_TWIN_WRITE_DOCS"):
        DOCS.write_text(before + BEGIN + table + END + after, encoding="utf-8")
        return
    changed = set(table.splitlines()) - set(stored.splitlines())
    assert not changed, "IMPACT_TWIN_WRITE_DOCS=1 writes docs/faults.md anew"
    assert stored == table


@pytest.mark.parametrize(
    ("mode", "words"), [("401", "OPENAI_API_KEY"), ("404", "--model"), ("no-such-mode", "--model")]
)
def test_a_run_whose_every_case_fails_for_one_reason_stops_early(faults, tmp_path, mode, words):
    pairs = None
    data, report = run_model(mode, faults.url, tmp_path / "run", pairs=pairs, trials=3)
    assert words in data.stopped
    tried = [record for record in data.cases.values() if record.attempts]
    assert len(tried) < 10
    assert set(report["summary"]["aggregate"]["classes"]) >= {"unresolved"}
    assert report["summary"]["aggregate"]["classes"]["unresolved"] == 15


def test_a_rate_limit_slows_all_cases_together(faults, tmp_path):
    mode = "429-twice"
    start = time.monotonic()
    data, _ = run_model(mode, faults.url, tmp_path / "run", pairs=None, trials=1, concurrency=6)
    assert len(data.cases) == 10
    gaps = faults.counts()[mode]["gaps"]
    # Six cases start at once, 40 requests follow; after the limit nobody asks for most of a second.
    assert max(gaps) >= 0.6
    assert gaps.index(max(gaps)) < 12
    assert time.monotonic() - start < 60
