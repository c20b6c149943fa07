"""The files that `repeat` and `report` write beside the terminal report."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from impact_twin.cli.output import check_target, write_target
from impact_twin.cli.show import write_report_to
from impact_twin.errors import InputError

Command = TypeVar("Command", bound=Callable[..., Any])


class Format(NamedTuple):
    """A way to write a report: its renderer, whether that reads the suite, and its help."""

    module: str
    function: str
    reads_suite: bool
    help: str


FORMATS: Mapping[str, Format] = {
    "html": Format("html.page", "html_page", True, "One self-contained page."),
    "markdown": Format("markdown", "markdown_text", True, "For a pull request or job summary."),
    "csv": Format("csv_table", "csv_text", False, "The observation table."),
    "sarif": Format("sarif", "sarif_text", True, "SARIF 2.1.0, one rule a control."),
    "junit": Format("junit", "junit_text", False, "JUnit XML, one test case a pair."),
}


def export_options(command: Command) -> Command:
    """Add `--json`, `--html` and the other formats to a command."""
    for name, known in reversed(list(FORMATS.items())):
        command = click.option(f"--{name}", metavar="FILE", help=known.help)(command)
    described = "The report itself; '-' is standard output."
    return click.option("--json", metavar="FILE", help=described)(command)


def take_exports(options: dict[str, Any]) -> dict[str, str]:
    """Take the targets that were asked for out of a command's options."""
    asked = {name: options.pop(name) for name in ("json", *FORMATS)}
    return {name: target for name, target in asked.items() if target is not None}


def absolute_targets(targets: Mapping[str, str]) -> dict[str, str]:
    """Return the targets with absolute paths: an agent may change the working directory."""
    return {
        name: target if target == "-" else str(Path(target).absolute())
        for name, target in targets.items()
    }


def check_exports(
    targets: Mapping[str, str], *, force: bool, directory: Path | None = None
) -> None:
    """Refuse targets that can't be written, or that get in each other's way.

    Args:
        targets: File, or `-`, by format.
        force: Whether files may be overwritten.
        directory: The run directory that will be made, if any.

    Raises:
        InputError: see `check_target`; or two targets are one.
    """
    for name, target in targets.items():
        check_target(target, force=force, option=f"--{name}")
        if directory is not None and target != "-" and Path(target).absolute() == directory:
            raise InputError(
                f"{target} is the run directory", where=f"--{name}", mend="Name a file."
            )
        same = [
            other
            for other, file in targets.items()
            if other < name and (file == target or Path(file).resolve() == Path(target).resolve())
        ]
        if same:
            raise InputError(
                f"--{same[0]} goes to {target} too", where=f"--{name}", mend="Name another file."
            )


def write_exports(
    report: Mapping[str, Any], targets: Mapping[str, str], folder: Path | None
) -> None:
    """Write every target.

    Args:
        report: The report.
        targets: File, or `-`, by format.
        folder: The suite's folder, when it is no bundled one.

    Raises:
        InputError: a file can't be written.
    """
    for name, target in targets.items():
        if name == "json":
            write_report_to(target, report)
            continue
        known = FORMATS[name]
        render = getattr(
            importlib.import_module(f"impact_twin.report.{known.module}"), known.function
        )
        arguments = (report, _suite(report, folder)) if known.reads_suite else (report,)
        write_target(target, render(*arguments))


def _suite(report: Mapping[str, Any], folder: Path | None) -> Any:
    from impact_twin.report.evidence import suite_of_report

    return suite_of_report(report, folder)
