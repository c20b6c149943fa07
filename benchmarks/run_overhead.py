"""What running costs beside the agents: the ratios of one run, as a Markdown table.

    python benchmarks/run_overhead.py                      # print the table
    python benchmarks/run_overhead.py --write docs/speed.md  # and put it between the file's marks

Ends with 1 when a limit isn't kept. Times are compared within one run on one machine; nothing else
should be busy on it.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from impact_twin.agents import load_source
from impact_twin.procurement.suite import load_suite
from impact_twin.report.model import build_report
from impact_twin.trials.plan import make_plan
from impact_twin.trials.records import RunData
from impact_twin.trials.runner import run

BEGIN, END = "<!-- table: run_overhead -->", "<!-- end: run_overhead -->"
NAP_S = 0.05
CONCURRENCY = 16
HEAVY = ("rich", "numpy", "jsonschema", "dspy", "agentdojo")


class Idle:
    """Does nothing at all."""

    name = "idle"

    def run(self, query: str, tools: list[object], *, system_directive: str = "") -> str:
        """Answer at once."""
        return "done"


class Sleeper:
    """Sleeps 50 ms."""

    name = "sleeper"

    def run(self, query: str, tools: list[object], *, system_directive: str = "") -> str:
        """Sleep, then answer."""
        time.sleep(NAP_S)
        return "done"


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        what: What was measured.
        measured: In figures.
        limit: What it must keep; empty when there is none.
        holds: Whether it does.
    """

    what: str
    measured: str
    limit: str = ""
    holds: bool = True


@dataclass(frozen=True)
class Timed:
    """A run with what it took.

    Attributes:
        data: The run.
        wall_s: Seconds.
        cpu_s: Processor seconds of this process, all threads.
    """

    data: RunData
    wall_s: float
    cpu_s: float

    @property
    def cases(self) -> int:
        """Cases of the run."""
        return len(self.data.cases)


def timed_run(agent: str, *, trials: int, concurrency: int, isolation: str = "thread") -> Timed:
    """Run an agent in a folder of its own, journal included."""
    suite = load_suite()
    spec = (
        {"kind": "demo", "name": agent.removeprefix("demo:")}
        if agent.startswith("demo:")
        else {"kind": "factory", "target": f"run_overhead:{agent}"}
    )
    source = load_source(spec)
    source.prepare()
    plan = make_plan(suite, source, trials=trials, isolation=isolation)
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = time.perf_counter(), time.process_time()
        data = run(plan, suite, source, Path(folder) / "run", concurrency=concurrency)
        return Timed(data, time.perf_counter() - wall, time.process_time() - cpu)


def sleeping(rounds: int, trials: int) -> Row:
    """Measure what a sleeping agent takes beyond an idle one, against the ideal."""

    def quickest(agent: str) -> float:
        runs = (timed_run(agent, trials=trials, concurrency=CONCURRENCY) for _ in range(rounds))
        return min(item.wall_s for item in runs)

    best = quickest("Sleeper") - quickest("Idle")
    ideal = trials * 10 * NAP_S / CONCURRENCY
    return Row(
        f"{trials * 10} cases that sleep 50 ms, 16 at once: time beyond the same run without sleep",
        f"{best:.3f} s, {best / ideal:.2f} times the ideal {ideal:.3f} s",
        "1.2 times the ideal",
        best <= 1.2 * ideal,
    )


def idling(rounds: int, trials: int, concurrency: int, *, limited: bool) -> Row:
    """Measure the harness's processor time for an agent that does nothing."""
    runs = [timed_run("Idle", trials=trials, concurrency=concurrency) for _ in range(rounds)]
    cpu = min(item.cpu_s / item.cases for item in runs) * 1e3
    return Row(
        f"processor time a case of an idle agent, {concurrency} at once, journal included",
        f"{cpu:.2f} ms",
        "1 ms" if limited else "",
        cpu <= 1.0 or not limited,
    )


def isolated(trials: int) -> Row:
    """Measure what a process for each case costs."""
    wall = timed_run("Idle", trials=trials, concurrency=2, isolation="process").wall_s
    start = timed_run("Idle", trials=1, concurrency=2, isolation="process").wall_s
    each = (wall - start) / (trials - 1) / 10 * 1e3
    return Row(
        "wall time a case with `--isolation process`, 2 at once, start excluded", f"{each:.1f} ms"
    )


def memory(few: int, many: int) -> Row:
    """Measure what the runner holds beyond its result, for few and for many trials."""
    _beyond_result(few)  # what the first measured run imports is no run's
    extra = {trials: _beyond_result(trials) for trials in (few, many)}
    growth = (extra[many] - extra[few]) / ((many - few) * 10)
    return Row(
        f"memory beyond the result, {few} and {many} trials",
        f"{extra[few] / 1024:.0f} and {extra[many] / 1024:.0f} KiB, {growth:.0f} bytes a case",
        "50 bytes a case",
        growth <= 50,
    )


def _beyond_result(trials: int) -> int:
    timed_run("Idle", trials=1, concurrency=4)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        result = timed_run("Idle", trials=trials, concurrency=4)
        gc.collect()
        held, peak = tracemalloc.get_traced_memory()
        assert result.cases == trials * 10
        return peak - held + _left_behind(result, before)
    finally:
        tracemalloc.stop()


def _left_behind(result: Timed, before: int) -> int:
    held = tracemalloc.get_traced_memory()[0]
    result.data.cases.clear()  # type: ignore[attr-defined]
    result.data.traces.clear()  # type: ignore[attr-defined]
    result.data.texts.clear()  # type: ignore[attr-defined]
    gc.collect()
    left = tracemalloc.get_traced_memory()[0] - before
    return max(0, min(left, held))


def report_size(trials: int) -> Row:
    """Measure the report of a deterministic agent."""
    data = timed_run("demo:careful", trials=trials, concurrency=4).data
    size = len(json.dumps(build_report(data, load_suite())).encode())
    return Row(
        f"report of a deterministic agent, {trials:,} trials",
        f"{size / 1e6:.2f} MB",
        "5 MB",
        size < 5e6,
    )


def help_imports() -> Row:
    """See which heavy packages `--help` imports."""
    code = (
        "import sys; from impact_twin.cli.main import cli\n"
        "try: cli(['--help'])\n"
        f"except SystemExit: print(*[m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found = done.stderr.strip()
    return Row(f"`--help` imports of {', '.join(HEAVY)}", found or "none", "none", not found)


def table(rows: list[Row]) -> str:
    """Return the rows as Markdown."""
    lines = ["| what | measured | limit | held |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {row.what} | {row.measured} | {row.limit or 'none'} | "
        f"{('yes' if row.holds else '**no**') if row.limit else ''} |"
        for row in rows
    ]
    made = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    return "\n".join([*lines, "", f"Made by `python benchmarks/run_overhead.py` on {made}."])


def write_between_marks(path: Path, text: str) -> None:
    """Put text between the marks of a file; raises ValueError when it has none."""
    content = path.read_text(encoding="utf-8")
    head, tail = content.index(BEGIN) + len(BEGIN), content.index(END)
    path.write_text(f"{content[:head]}\n{text}\n{content[tail:]}", encoding="utf-8")


def measure(quick: bool) -> list[Row]:
    """Measure everything; `quick` with fewer trials, to see that it works."""
    rounds = 1 if quick else 5
    steps: list[Callable[[], Row]] = [
        lambda: sleeping(rounds, 4 if quick else 20),
        lambda: idling(rounds, 5 if quick else 100, 4, limited=True),
        lambda: idling(rounds, 5 if quick else 100, 1, limited=False),
        lambda: isolated(3 if quick else 20),
        lambda: memory(2, 6 if quick else 102),
        lambda: report_size(5 if quick else 1000),
        help_imports,
    ]
    rows = []
    for step in steps:
        rows.append(step())
        print(f"{rows[-1].what}: {rows[-1].measured}", file=sys.stderr, flush=True)
    return rows


def main() -> int:
    """Measure, print, and write if asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FILE", help="put the table into this file")
    parser.add_argument("--quick", action="store_true", help="few trials, to see that it works")
    options = parser.parse_args()
    rows = measure(options.quick)
    text = table(rows)
    print(text)
    if options.write is not None:
        write_between_marks(options.write, text)
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
