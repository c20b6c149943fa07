"""Folders of submissions, attestations beside files, and the command."""

import json
import os
from pathlib import Path

import click.testing
import pytest

from impact_twin.cli.board import board as command
from impact_twin.errors import InputError
from impact_twin.proofrun.board_files import board_of_folder, read_expected


@pytest.fixture
def folder(tmp_path, good_bytes, messy_bytes):
    path = tmp_path / "submissions"
    path.mkdir()
    (path / "good.json").write_bytes(good_bytes)
    (path / "messy.json").write_bytes(messy_bytes)
    (path / "README.md").write_text("not a bundle")
    (path / ".hidden.json").write_text("{}")
    return path


def files(board):
    return [row.entry.name for found in board.boards for row in found.rows]


def test_bundles_are_found_and_everything_else_is_left_alone(folder, verifier):
    (folder / "more.json").mkdir()
    os.symlink(folder / "good.json", folder / "link.json")
    os.mkfifo(folder / "pipe.json")
    (folder / "torn.json").write_bytes(b'{"kind": ')
    board = board_of_folder(folder, verifier)
    assert files(board) == ["good.json"]
    problems = {entry.name: entry.problem for entry in board.refused}
    assert set(problems) == {"more.json", "link.json", "pipe.json", "torn.json"}
    assert "no regular file" in problems["pipe.json"]
    assert "can't be read" in problems["link.json"]


def test_an_attestation_that_is_none_keeps_a_bundle_off_the_board(folder, verifier):
    pytest.importorskip("sigstore")
    (folder / "good.sigstore.json").write_text('{"dsseEnvelope": {}, "dsseEnvelope": {}}')
    board = board_of_folder(folder, verifier)
    assert files(board) == []
    assert "attestation does not hold" in board.refused[0].problem


def test_an_attestation_that_cannot_be_judged_raises_no_tier(folder, verifier):
    pytest.importorskip("sigstore")
    kind = "application/vnd.dev.sigstore.bundle.v9.9+json"
    (folder / "good.sigstore.json").write_text(json.dumps({"mediaType": kind}))
    board = board_of_folder(folder, verifier)
    assert files(board) == ["good.json"]
    facts = board.boards[0].rows[0].facts
    assert facts.tier == "self-attested"
    assert "unsupported" in facts.missing[0]


def test_an_attestation_of_other_bytes_does_not_hold(folder, verifier):
    pytest.importorskip("sigstore")
    shared = Path(__file__).parents[2].parent / "shared" / "reference" / "sigstore"
    if not shared.is_dir():
        pytest.skip("../shared is not here")
    real = shared / "reusable-workflow" / "reusable-workflow-attestation.sigstore.json"
    (folder / "good.sigstore.json").write_bytes(real.read_bytes())
    board = board_of_folder(folder, verifier)
    assert files(board) == []
    (problem,) = [entry.problem for entry in board.refused]
    assert "rung 7 (provenance)" in problem


@pytest.mark.parametrize(
    ("expected", "tier"),
    [
        (None, "self-attested"),
        ({"repository": "Acme/agent", "signer_workflow": "SIGNER"}, "CI-attested bytes"),
        ({"repository": "acme/agent", "signer_workflow": "SIGNER"}, None),
        ({"repository": "Acme/agent"}, "self-attested"),
    ],
)
def test_who_made_a_bundle_is_for_the_keeper_of_the_board_to_say(
    folder, tmp_path, verifier, good_bytes, expected, tier
):
    pytest.importorskip("sigstore")
    from provenance_forge import REPOSITORY, SIGNER, Sigstore, statement

    sigstore = Sigstore()
    (folder / "good.sigstore.json").write_bytes(sigstore.attest(statement(good_bytes)))
    root, path = tmp_path / "root", tmp_path / "expect"
    root.write_bytes(sigstore.root())
    if expected is not None:
        own = {key: SIGNER if value == "SIGNER" else value for key, value in expected.items()}
        path.write_text(json.dumps({"good.json": own}))
    read = read_expected(None if expected is None else path, root)
    board = board_of_folder(folder, verifier, read)
    if tier is None:
        assert files(board) == []
        assert "repository" in board.refused[0].problem
        return
    facts = board.boards[0].rows[0].facts
    assert facts.tier == tier
    assert facts.run.repository == REPOSITORY.removeprefix("https://github.com/")
    assert facts.run.certified
    assert any("compared with nothing" in note for note in board.notes) == (expected is None)
    (seen,) = board.repositories
    assert seen.runs == 1


def test_strays_are_named(folder, verifier):
    (folder / "lost.sigstore.json").write_text("{}")
    (folder / "expected.txt").write_text('{"gone.json": {"repository": "a/b"}}')
    board = board_of_folder(folder, verifier, read_expected(folder / "expected.txt"))
    assert any("lost.sigstore.json attests nothing" in note for note in board.notes)
    assert any("gone.json, which is not here" in note for note in board.notes)


def test_expectations_of_one_file_win_over_those_of_all(tmp_path):
    path = tmp_path / "e.json"
    path.write_text(
        '{"*": {"repository": "a/b", "runner": "github-hosted"}, "x.json": {"repository": "c/d"}}'
    )
    expected = read_expected(path)
    assert expected.of("x.json").repository == "c/d"
    assert expected.of("x.json").runner == "github-hosted"
    assert expected.of("y.json").repository == "a/b"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[]", "no JSON object"),
        ('{"x.json": 1}', "x.json is no JSON object"),
        ('{"x.json": {"repo": "a/b"}}', "'repo'"),
        ('{"x.json": {"run_attempt": true}}', "run_attempt"),
        ('{"x.json": {"repository": 3}}', "repository"),
        ('{"x.json": {"repository": "no slash"}}', "--repository"),
        ('{"x.json": {}, "x.json": {}}', "twice"),
    ],
)
def test_a_bad_expectations_file_is_refused(tmp_path, text, problem):
    path = tmp_path / "e.json"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_expected(path)
    assert problem in caught.value.line()


def test_a_folder_that_is_none_is_an_input_error(tmp_path, verifier):
    with pytest.raises(InputError, match="can't be listed"):
        board_of_folder(tmp_path / "none", verifier)


def run(*arguments):
    return click.testing.CliRunner().invoke(
        command, [str(item) for item in arguments], standalone_mode=False
    )


def test_the_command_shows_and_writes_the_board(folder, tmp_path):
    shown = run(folder)
    assert shown.exception is None
    assert "good.json" in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 80
    page, text = tmp_path / "b.html", tmp_path / "b.md"
    done = run(folder, "--html", page, "--markdown", text, "--json")
    assert done.exception is None
    assert json.loads(done.stdout)["boards"][0]["rows"][0]["file"] == "good.json"
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert text.read_text().startswith("## ImpactTwin board")
    again = run(folder, "--html", page)
    assert isinstance(again.exception, InputError)
    assert run(folder, "--html", page, "--force").exception is None
