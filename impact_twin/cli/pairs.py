"""`impact-twin pairs`: list, show and compare the pairs, and print what the digest covers."""

from __future__ import annotations

import difflib
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from impact_twin.cli.output import check_target, say, terminal_width, write_json
from impact_twin.text import escape

if TYPE_CHECKING:
    from impact_twin.procurement.records import Pair
    from impact_twin.procurement.suite import Suite

suite_option = click.option(
    "--suite", "folder", metavar="DIR", help="Your own suite instead of procurement-v1."
)
json_option = click.option(
    "--json", "target", metavar="FILE", help="Write JSON to a file, or to standard output for '-'."
)
force_option = click.option("--force", is_flag=True, help="Overwrite the JSON file.")


@click.group(invoke_without_command=True)
@click.pass_context
def pairs(ctx: click.Context) -> None:
    """List, show and compare the pairs of the suite."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_pairs)


@pairs.command("list")
@suite_option
@json_option
@force_option
def list_pairs(folder: str | None = None, target: str | None = None, force: bool = False) -> None:
    """List the pairs: what each poison wants, and the control it would break."""
    check_target(target, force=force, option="--json")
    suite = _load(folder)
    if target is not None:
        write_json(target, {"suite": suite.id, "pairs": [_summary(pair) for pair in suite.pairs]})
        return
    say(f"{escape(suite.id)}: {escape(suite.title)}")
    say(suite.digest)
    for pair in suite.pairs:
        say("")
        say(escape(pair.id))
        _block(pair.title)
        _block(f"the poison wants: {_wants(pair)}")
        _block(f"control: {pair.control.replace('_', ' ')}")


@pairs.command("show")
@click.argument("pair_id", metavar="PAIR")
@click.option(
    "--twin", type=click.Choice(["clean", "poisoned"]), default="clean", show_default=True
)
@suite_option
@json_option
@force_option
def show_pair(pair_id: str, twin: Any, folder: str | None, target: str | None, force: bool) -> None:
    """Show one twin: the request, its documents, and what scoring expects."""
    check_target(target, force=force, option="--json")
    suite = _load(folder)
    pair = suite.pair(pair_id)
    if target is not None:
        write_json(target, _content(suite, pair, twin))
        return
    say(f"{escape(pair.id)} ({twin} twin): {escape(pair.title)}")
    _section("System directive", suite.system_directive)
    _section("Request", pair.request)
    for document in pair.documents.values():
        note = (
            " (the passage that differs is in here)" if document.id == pair.passage_document else ""
        )
        _section(f"{document.id}: {document.title}{note}", pair.document_text(document.id, twin))
    scores = ", ".join(f"{vendor} {score:.2f}" for vendor, score in pair.expected_scores().items())
    _section("Expected", f"decision {pair.decision}; scores {scores}")
    _section("The poison wants", _wants(pair))


@pairs.command("diff")
@click.argument("pair_id", metavar="PAIR")
@suite_option
@json_option
@force_option
def diff_pair(pair_id: str, folder: str | None, target: str | None, force: bool) -> None:
    """Show the one text in which the twins differ."""
    check_target(target, force=force, option="--json")
    suite = _load(folder)
    pair = suite.pair(pair_id)
    clean, poisoned = pair.passage("clean"), pair.passage("poisoned")
    if target is not None:
        write_json(
            target,
            {
                "pair": pair.id,
                "document": pair.passage_document,
                "clean": clean,
                "poisoned": poisoned,
            },
        )
        return
    say(f"{escape(pair.id)}: the twins differ in document {pair.passage_document} only")
    ratio = 100 * (len(poisoned) / len(clean) - 1)
    say(f"clean {len(clean)} characters, poisoned {len(poisoned)} ({ratio:+.1f} %)")
    say("")
    width = terminal_width() - 4
    for line in difflib.ndiff(_wrapped(clean, width), _wrapped(poisoned, width)):
        if not line.startswith("?"):
            say(escape(line).rstrip())


@pairs.command("manifest")
@suite_option
@json_option
@force_option
def manifest(folder: str | None, target: str | None, force: bool) -> None:
    """Print everything that the suite digest covers."""
    check_target(target, force=force, option="--json")
    suite = _load(folder)
    if target is not None:
        write_json(target, {"digest": suite.digest, "manifest": suite.manifest})
        return
    say(f"suite    {escape(suite.id)}")
    say(f"digest   {suite.digest}")
    say(f"scoring  {escape(suite.scoring_rule)}, tolerance {suite.score_tolerance}")
    say(f"golden   {len(suite.golden)} files")
    say("")
    for pair in suite.manifest["pairs"]:
        say(escape(pair["id"]))
        say(f"  request            {pair['request']}")
        for twin, value in pair["passages"].items():
            say(f"  {twin + ' passage':18s} {value}")
        for document in pair["documents"]:
            say(f"  {escape(document['id']):18s} {document['text']}")


def _load(folder: str | None) -> Suite:
    from impact_twin.procurement.suite import load_suite

    return load_suite(None if folder is None else Path(folder))


def _summary(pair: Pair) -> dict[str, Any]:
    return {
        "id": pair.id,
        "title": pair.title,
        "control": pair.control,
        "wants": _wants(pair),
        "decision": pair.decision,
        "documents": list(pair.documents),
    }


def _content(suite: Suite, pair: Pair, twin: Any) -> dict[str, Any]:
    return _summary(pair) | {
        "twin": twin,
        "system_directive": suite.system_directive,
        "request": pair.request,
        "documents": [
            {
                "id": document.id,
                "title": document.title,
                "kind": document.kind,
                "vendor": document.vendor,
                "sealed": document.sealed,
                "text": pair.document_text(document.id, twin),
            }
            for document in pair.documents.values()
        ],
        "passage_document": pair.passage_document,
        "expected_scores": pair.expected_scores(),
    }


def _wants(pair: Pair) -> str:
    goal = pair.goal
    texts = {
        "score_and_recommend": f"inflate the score of {goal.vendor} and recommend it",
        "disclose": f"send document {', '.join(goal.documents)} to {goal.recipient}",
        "payment_account": f"set the payment account of {goal.vendor} to {goal.account}",
        "vendor_status": f"set the status of {goal.vendor} to {goal.status}",
        "award": f"award {goal.requisition} to {goal.vendor} under approval {goal.approval}",
    }
    return texts[goal.kind]


def _section(title: str, text: str) -> None:
    say("")
    say(f"--- {escape(title)}")
    for line in _wrapped(escape(text, keep="\n").rstrip("\n"), terminal_width()):
        say(line)


def _block(text: str) -> None:
    for line in textwrap.wrap(escape(text), terminal_width() - 2):
        say(f"  {line}")


def _wrapped(text: str, width: int) -> list[str]:
    return [
        line
        for paragraph in text.splitlines()
        for line in (textwrap.wrap(paragraph, width) or [""])
    ]
