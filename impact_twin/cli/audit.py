"""`impact-twin audit`: which scoring rule ran, and which cases were counted."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from impact_twin.cli.output import (
    check_apart,
    check_target,
    say,
    terminal_width,
    write_json,
    write_target,
)
from impact_twin.errors import CheckFailedError, InputError

if TYPE_CHECKING:
    from impact_twin.audit.document import Document

CONTEXT = {"help_option_names": ["-h", "--help"]}
STATES = {"start-up": "start", "imported": "imported", "rebuilt": "rebuilt"}


@click.group(context_settings=CONTEXT, short_help="Which scoring rule ran, which cases counted.")
def audit() -> None:
    """Audit AgentDojo: which scoring rule ran, and which cases were counted.

    All of it reads; AgentDojo is never changed.
    """


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add --json, --html and --force."""

    @click.option("--json", "json_to", metavar="FILE", help="Write JSON to FILE, or - for stdout.")
    @click.option("--html", "html_to", metavar="FILE", help="Write an HTML page to FILE.")
    @click.option("--force", is_flag=True, help="Overwrite existing files.")
    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return command(*args, **kwargs)

    return wrapped


@audit.command(short_help="Name the scoring rule of every version, suite and task.")
@click.option(
    "--benchmark-version",
    "versions",
    multiple=True,
    metavar="V",
    help="Only this version, with a list of its rules; repeat for more.",
)
@click.option(
    "--state",
    type=click.Choice(list(STATES)),
    default="start-up",
    show_default=True,
    help="Describe the rules of start-up, or with the left-out modules imported, or with the "
    "version lists rebuilt too (in a separate process).",
)
@click.option(
    "--against", metavar="FILE", help="Compare with a stored snapshot; exit 1 if changed."
)
@click.option("--save", "save_to", metavar="FILE", help="Store a snapshot of the rules.")
@output_options
def rules(
    *,
    versions: tuple[str, ...],
    state: str,
    against: str | None,
    save_to: str | None,
    json_to: str | None,
    html_to: str | None,
    force: bool,
) -> None:
    """Name the scoring rule of every benchmark version, suite and task of AgentDojo."""
    from impact_twin.audit import rules_page, snapshot

    _check_outputs(force, json=json_to, html=html_to, save=save_to)
    stored = snapshot.load_snapshot(Path(against)) if against else None
    _busy("Loading AgentDojo in a separate process")
    survey = snapshot.survey()
    comparisons = {
        name: snapshot.compare(
            snapshot.only(survey["start"], versions), snapshot.only(survey[name], versions)
        )
        for name in ("imported", "rebuilt")
    }
    described = snapshot.only(survey[STATES[state]], versions)
    found = None
    if against and stored is not None:
        found = (against, snapshot.compare(snapshot.only(stored, versions, against), described))
    report = rules_page.rules_report(survey, comparisons, described, STATES[state], found)
    document = rules_page.rules_document(report, comparisons, found, list_rules=bool(versions))
    if save_to:
        write_json(save_to, described)
    _write(document, report, json_to, html_to, quiet=save_to == "-")
    if found and not found[1].holds:
        raise CheckFailedError(
            f"rules changed: {len(found[1].changed)}, gone: {len(found[1].removed)}",
            where=found[0],
        )


@audit.command(short_help="Compare released records with the rules that are loaded.")
@click.argument("source", metavar="DIR|TAR")
@click.option(
    "--benchmark-version",
    "version",
    metavar="V",
    help="Ask about every record under V [default: the version it names, else v1].",
)
@click.option(
    "--other-version",
    metavar="V",
    help="Also ask the rule of V, with the modules loaded that start-up leaves out (in a "
    "separate process).",
)
@output_options
def records(
    *,
    source: str,
    version: str | None,
    other_version: str | None,
    json_to: str | None,
    html_to: str | None,
    force: bool,
) -> None:
    """Compare saved labels with what the scoring rules say of the rebuilt final state.

    DIR|TAR holds released AgentDojo records; an archive is read without unpacking it.
    """
    from impact_twin.audit import disagreements, records_page
    from impact_twin.audit.records import read_records

    _check_outputs(force, json=json_to, html=html_to)
    found = read_records(Path(source))
    choice, other = _choices(version, other_version)
    _busy("Asking the scoring rules in a separate process")
    examination = disagreements.examine(found, choice, other)
    document = records_page.records_document(examination, source, _agentdojo())
    value = disagreements.as_json(examination, source, _agentdojo())
    _write(document, value, json_to, html_to)


@audit.command(short_help="Show what a filter on records does to a comparison.")
@click.argument("source", metavar="DIR|TAR")
@click.option("--configuration", multiple=True, metavar="NAME", help="Only these; * and ? work.")
@click.option("--suite", multiple=True, metavar="NAME", help="Only records of this suite.")
@click.option("--attack", multiple=True, metavar="NAME", help="Only records of this attack.")
@click.option("--injection-task", multiple=True, metavar="ID", help="Only this objective.")
@click.option("--user-task", multiple=True, metavar="ID", help="Only this user task.")
@click.option(
    "--filter",
    "filter_name",
    type=click.Choice(["readable-result", "no-error"]),
    default="readable-result",
    show_default=True,
    help="What a record must have to stay: readable results of the tools that the objective "
    "needs, or an end without an error.",
)
@click.option("--tool", "tools", multiple=True, metavar="NAME", help="Tool that must be readable.")
@click.option(
    "--matched/--unmatched",
    default=True,
    show_default=True,
    help="Remove a failing case from every configuration, or only where it fails.",
)
@click.option(
    "--confidence",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Of the intervals.",
)
@click.option("--benchmark-version", "version", metavar="V", help="As in audit records.")
@click.option("--other-version", metavar="V", help="As in audit records.")
@output_options
def exclusions(
    *,
    source: str,
    configuration: tuple[str, ...],
    suite: tuple[str, ...],
    attack: tuple[str, ...],
    injection_task: tuple[str, ...],
    user_task: tuple[str, ...],
    filter_name: str,
    tools: tuple[str, ...],
    matched: bool,
    confidence: float,
    version: str | None,
    other_version: str | None,
    json_to: str | None,
    html_to: str | None,
    force: bool,
) -> None:
    """Show whom a filter removes, the rates before and after, and what the evidence supports."""
    if not 0 < confidence < 1:  # click takes a NaN for one in the range
        raise InputError("not in (0, 1)", where="--confidence", mend="Try 0.95.")
    from impact_twin.audit import disagreements, exclusions_page
    from impact_twin.audit import exclusions as room
    from impact_twin.audit.records import read_records

    _check_outputs(force, json=json_to, html=html_to)
    if tools and filter_name != room.READABLE:
        raise InputError("--tool belongs to --filter readable-result", where="--tool")
    selection = room.Selection(configuration, suite, attack, injection_task, user_task)
    everything = read_records(Path(source))
    chosen = room.chosen(everything, selection)
    choice, other = _choices(version, other_version)
    _busy("Asking the scoring rules in a separate process")
    examination = disagreements.examine(chosen, choice, other)
    found = room.compare_under_filter(
        examination.findings,
        selection=selection,
        filter_name=filter_name,
        tools=tools,
        matched=matched,
        confidence=confidence,
        left_aside=everything.files - chosen.files,
        nameless=len(chosen.unreadable),
    )
    document = exclusions_page.exclusions_document(found, source, _agentdojo())
    _write(document, room.as_json(found, source, _agentdojo()), json_to, html_to)


def _busy(text: str) -> None:
    if sys.stderr.isatty():
        say(f"{text} ...", sys.stderr)


def _choices(version: str | None, other_version: str | None) -> tuple[Any, Any]:
    from impact_twin.audit.questions import RuleChoice

    other = RuleChoice(other_version, rebuilt=True) if other_version else None
    return RuleChoice(version), other


def _agentdojo() -> str:
    from importlib.metadata import version

    return version("agentdojo")


def _check_outputs(force: bool, **targets: str | None) -> None:
    for name, target in targets.items():
        check_target(target, force=force, option=f"--{name}")
    check_apart({f"--{name}": target for name, target in targets.items()})


def _write(
    document: Document, value: Any, json_to: str | None, html_to: str | None, *, quiet: bool = False
) -> None:
    from impact_twin.audit.document import to_html, to_text

    if json_to:
        write_json(json_to, value)
    if html_to:
        write_target(html_to, to_html(document))
    if not quiet and "-" not in (json_to, html_to):
        say(to_text(document, terminal_width()))
