"""`impact-twin leaderboard`: measure base models on AgentDojo, score them, show the board."""

from __future__ import annotations

import contextlib
import datetime
import importlib
import logging
import os
import platform
import re
import shutil
import signal
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from impact_twin import __version__
from impact_twin.canonical import MAX_BYTES
from impact_twin.cli.output import (
    check_apart,
    check_target,
    say,
    terminal_width,
    write_json,
    write_target,
)
from impact_twin.errors import InputError
from impact_twin.reading import read_standard_input
from impact_twin.text import escape, storable

if TYPE_CHECKING:
    from impact_twin.leaderboard.endpoint import Endpoint
    from impact_twin.leaderboard.plan import Plan
    from impact_twin.leaderboard.protocol import Protocol
    from impact_twin.leaderboard.records import Record
    from impact_twin.leaderboard.tasks import Benchmark

RUNS = Path("leaderboard-runs")
PLAIN_EVERY_S = 30.0
MAX_NAME = 100
MAX_ADDRESS = 500


@click.group()
def leaderboard() -> None:
    """Measure base models on AgentDojo under a frozen protocol."""


@leaderboard.command()
@click.option("--model", required=True, metavar="ID", help="PROVIDER/NAME, a pinned version.")
@click.option("--protocol", "protocol_file", metavar="FILE", help="Another protocol than ours.")
@click.option("--out", metavar="DIR", help="The run's folder.  [leaderboard-runs/MODEL]")
@click.option("--attack", "attacks", multiple=True, metavar="NAME", help="Only these attacks.")
@click.option("--benign", is_flag=True, help="Also without an attack, for U_benign.")
@click.option("--full", is_flag=True, help="Every user task, not the pinned ones.")
@click.option("--jobs", type=click.IntRange(1, 64), default=4, show_default=True, help="At a time.")
@click.option("--api-base", metavar="URL", help="A server that speaks the OpenAI chat protocol.")
@click.option("--api-key-env", metavar="NAME", help="The variable that holds the key.")
@click.option(
    "--upstream", "upstreams", multiple=True, metavar="NAME", help="OpenRouter: use only."
)
@click.option("--name", metavar="NAME", help="What to call the model on the board.")
@click.option("--retry-unresolved", is_flag=True, help="Run again what stayed unknown.")
@click.option("--dry-run", is_flag=True, help="Say what would run, and stop.")
@click.option("--json", "target", metavar="FILE", help="Write the row here; '-' is stdout.")
@click.option("--quiet", is_flag=True, help="No progress and no table.")
@click.option("--force", is_flag=True, help="Discard another stored run; overwrite FILE.")
def run(*, target: str | None, quiet: bool, force: bool, dry_run: bool, **options: Any) -> int:
    """Run a model on every pair of the protocol, and keep each result as it ends.

    The same command again goes on where a stopped run was. A stored result counts only if model,
    protocol, repeats, attacks, coverage, releases, tool schemas and scoring rules are the same.

    \b
    Exit code: 0 done; 2 usage or input; 3 the provider is down or refuses; 130, 143 by signal.
    """  # noqa: D301 (click's mark for lines to keep)
    from impact_twin.leaderboard.protocol import check_model_id, check_versions, load_protocol
    from impact_twin.leaderboard.store import check_directory

    check_model_id(options["model"])
    check_target(target, force=force, option="--json")
    file = options["protocol_file"]
    protocol = load_protocol(None if file is None else Path(file))
    check_versions(protocol)
    directory = Path(options["out"]) if options["out"] else _directory(options)
    check_directory(directory)
    job = _job(protocol, directory, options, force=force, dry_run=dry_run)
    with _quiet_libraries():
        code = _run(job, quiet=quiet)
    if dry_run:
        return code
    from impact_twin.leaderboard.scoring import score
    from impact_twin.leaderboard.store import read_run

    rows = score([read_run(directory)], [])
    if target is not None:
        write_json(target, rows)
    if not quiet:
        _show(rows, to_stderr=target == "-")
        say(f"Stored in {escape(str(directory))}", sys.stderr)
    return code


@leaderboard.command()
@click.argument("files", nargs=-1, required=True)
@click.option("--json", "target", metavar="FILE", help="Write the rows here; '-' is stdout.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def score(*, files: tuple[str, ...], target: str | None, force: bool) -> None:
    """Score runs (their folders) and published rows of DSPy Security Bench (their files)."""
    from impact_twin.leaderboard.board import load_rows

    check_target(target, force=force, option="--json")
    rows = load_rows([Path(name) for name in files])
    if target is not None:
        write_json(target, rows)
    _show(rows, to_stderr=target == "-")


@leaderboard.command()
@click.argument("files", nargs=-1, required=True)
@click.option("--markdown", metavar="FILE", help="Write Markdown here; '-' is stdout.")
@click.option("--html", "page", metavar="FILE", help="Write a page here; '-' is stdout.")
@click.option("--force", is_flag=True, help="Overwrite a FILE.")
def render(*, files: tuple[str, ...], markdown: str | None, page: str | None, force: bool) -> None:
    """Show the board of scored rows ('-' reads them), runs or published rows."""
    from impact_twin.leaderboard.board import load_rows, rows_from_bytes

    for target, option in ((markdown, "--markdown"), (page, "--html")):
        check_target(target, force=force, option=option)
    check_apart({"--markdown": markdown, "--html": page})
    if files == ("-",):
        rows = rows_from_bytes(read_standard_input(MAX_BYTES), "standard input")["rows"]
    else:
        rows = load_rows([Path(name) for name in files])["rows"]
    if markdown is not None:
        from impact_twin.leaderboard.render import render_markdown

        write_target(markdown, render_markdown(rows))
    if page is not None:
        from impact_twin.leaderboard.page import render_html

        write_target(page, render_html(rows))
    if markdown is None and page is None:
        from impact_twin.leaderboard.render import render_text

        say(render_text(rows, width=terminal_width()).rstrip("\n"))


@leaderboard.command("coverage-check")
@click.argument("files", nargs=-1, required=True)
@click.option("--json", "target", metavar="FILE", help="Write the figures here; '-' is stdout.")
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def coverage_check(*, files: tuple[str, ...], target: str | None, force: bool) -> None:
    """Compare the pinned user tasks with all of them, model by model.

    FILES are runs and published rows of both coverages; a run with --full holds both.
    """
    from impact_twin.leaderboard import coverage
    from impact_twin.leaderboard.scoring import read_sources

    check_target(target, force=force, option="--json")
    found = coverage.coverage_check(*read_sources([Path(name) for name in files]))
    if target is not None:
        write_json(target, found)
    say(coverage.render_text(found).rstrip("\n"), sys.stderr if target == "-" else sys.stdout)


@dataclass(frozen=True)
class _Job:
    protocol: Protocol
    directory: Path
    options: dict[str, Any]
    force: bool
    dry_run: bool
    api_key: str | None


def _job(
    protocol: Protocol, directory: Path, options: dict[str, Any], *, force: bool, dry_run: bool
) -> _Job:
    name = options["api_key_env"]
    key = os.environ.get(name) if name else None
    if name and not key:
        raise InputError(f"the variable {name} is not set", where="--api-key-env")
    base = options["api_base"]
    if options["name"] is not None and storable(options["name"]) != options["name"]:
        raise InputError("not text", where="--name")
    for option, longest in (("name", MAX_NAME), ("api_base", MAX_ADDRESS)):
        if options[option] is not None and not 1 <= len(options[option]) <= longest:
            raise InputError(
                f"not 1 to {longest} characters", where=f"--{option.replace('_', '-')}"
            )
    if any(not 1 <= len(upstream) <= MAX_NAME for upstream in options["upstreams"]):
        raise InputError(f"not 1 to {MAX_NAME} characters", where="--upstream")
    if base is not None and not re.match(r"https?://[^\s@?#]+$", base):
        raise InputError("not an http(s) address without credentials and query", where="--api-base")
    return _Job(protocol, directory, options, force, dry_run, key)


def _run(job: _Job, *, quiet: bool) -> int:
    from impact_twin.leaderboard.plan import make_plan

    options, protocol = job.options, job.protocol
    plan = make_plan(protocol, attacks=options["attacks"])
    endpoint = None if job.dry_run else _endpoint(job)
    if not quiet:
        say("Loading AgentDojo ...", sys.stderr)
    from impact_twin.leaderboard.runner import Work, execute, pending
    from impact_twin.leaderboard.store import RunStore
    from impact_twin.leaderboard.tasks import Benchmark

    benchmark = Benchmark(protocol)
    if options["full"]:
        plan = make_plan(protocol, attacks=options["attacks"], full=benchmark.full())
    if endpoint is None:
        say(_foretold(plan, protocol, benign=options["benign"]))
        return 0
    identity = _identity(job, plan, benchmark)
    with RunStore(job.directory, identity, force=job.force) as store:
        keys = pending(store, benign=options["benign"], again=options["retry_unresolved"])
        with _progress(len(keys), quiet=quiet) as progress, _terminable():
            work = Work(protocol, benchmark, endpoint, store, options["jobs"], progress)
            execute(work, keys)
    return 0


def _endpoint(job: _Job) -> Endpoint:
    from impact_twin.leaderboard.endpoint import Endpoint, EndpointOptions

    options = EndpointOptions(
        model=job.options["model"],
        api_base=job.options["api_base"],
        api_key=job.api_key,
        upstreams=job.options["upstreams"],
    )
    return Endpoint(options, request_seconds=job.protocol.limits.request_seconds)


def _identity(job: _Job, plan: Plan, benchmark: Benchmark) -> dict[str, Any]:
    import importlib.metadata

    from impact_twin.audit.rules import rule_identity

    options, protocol = job.options, job.protocol
    rules = {tasks.name: rule_identity(protocol.benchmark, tasks.name) for tasks in plan.suites}
    return {
        "kind": "impact-twin/leaderboard-run",
        "schema_version": 1,
        "model": {
            "id": options["model"],
            "display_name": options["name"],
            "api_base": options["api_base"],
            "upstreams": list(options["upstreams"]),
        },
        "protocol": protocol.content,
        "protocol_digest": protocol.digest,
        "plan": plan.to_json(),
        "versions": {
            "impact_twin": __version__,
            "python": platform.python_version(),
            **{
                name: importlib.metadata.version(name) for name in ("dspy", "agentdojo", "pydantic")
            },
        },
        "stimulus_digest": benchmark.stimulus_digest(plan),
        "rules": rules,
        "cache": "off",
        "started_on": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
    }


def _foretold(plan: Plan, protocol: Protocol, *, benign: bool) -> str:
    lines = [f"{protocol.id} {protocol.version}, {plan.coverage}, {plan.repeats} repeats"]
    counts: dict[tuple[str, str], int] = {}
    for cell in plan.cells(benign=benign):
        place = (cell.attack, cell.suite)
        counts[place] = counts.get(place, 0) + sum(1 for _ in plan.keys(cell))
    lines += [f"  {attack} on {suite}: {count} runs" for (attack, suite), count in counts.items()]
    total = plan.total(benign=benign)
    # The scaffold asks once more, for a forced answer, when its turns are used up.
    lines.append(
        f"  {total} runs, at most {total * (protocol.max_iters + 1)} requests without retries"
    )
    return "\n".join(lines)


def _directory(options: dict[str, Any]) -> Path:
    slug = re.sub(r"[^a-z0-9.]+", "-", options["model"].lower()).strip("-.")
    return RUNS / (f"{slug}-full" if options["full"] else slug)


def _show(rows: dict[str, Any], *, to_stderr: bool) -> None:
    from impact_twin.leaderboard.render import render_text

    say(
        render_text(rows["rows"], width=terminal_width()).rstrip("\n"),
        sys.stderr if to_stderr else sys.stdout,
    )


@contextlib.contextmanager
def _quiet_libraries() -> Iterator[None]:
    # dspy warns of each unreadable reply; the records hold that. Its import sets its own level.
    importlib.import_module("dspy")
    logging.getLogger("dspy").setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


class _Terminated(KeyboardInterrupt):
    """SIGTERM, treated like an interrupt."""


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _Terminated

    before = {
        signal.SIGTERM: signal.signal(signal.SIGTERM, stop),
        # A shell's background job starts with it ignored.
        signal.SIGINT: signal.signal(signal.SIGINT, signal.default_int_handler),
    }
    try:
        yield
    except KeyboardInterrupt as err:
        say("Stopped; what had finished is stored. The same command goes on.", sys.stderr)
        raise SystemExit(143 if isinstance(err, _Terminated) else 130) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _progress(planned: int, *, quiet: bool) -> Iterator[Any]:
    line = _Progress(planned, quiet=quiet)
    try:
        yield line
    finally:
        line.clear()


class _Progress:
    """Runs done, the latest one, and the time left, on standard error."""

    def __init__(self, planned: int, *, quiet: bool) -> None:
        self._planned = planned
        self._quiet = quiet
        self._live = sys.stderr.isatty()
        self._start = self._said = time.monotonic()
        self._done = 0
        self._unresolved = 0

    def __call__(self, record: Record) -> None:
        """Count a stored record; called from the workers, one at a time is good enough."""
        self._done += 1
        self._unresolved += record.unresolved
        now = time.monotonic()
        if self._quiet or (not self._live and now - self._said < PLAIN_EVERY_S):
            return
        self._said = now
        text = self._text(record, now)
        if self._live:
            width = shutil.get_terminal_size((80, 24)).columns
            sys.stderr.write("\r\x1b[2K" + text[: width - 1])
            sys.stderr.flush()
        else:
            say(text, sys.stderr)

    def clear(self) -> None:
        """Remove the live line."""
        if self._live and not self._quiet and self._done:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()

    def _text(self, record: Record, now: float) -> str:
        from impact_twin.cli.progress import clock

        left = (now - self._start) / self._done * (self._planned - self._done)
        key = record.key
        unknown = f", {self._unresolved} unresolved" if self._unresolved else ""
        return escape(
            f"{self._done}/{self._planned} runs, {clock(left)} left{unknown}; "
            f"{key.suite} {key.attack} repeat {key.repeat}"
        )
