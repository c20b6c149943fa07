"""Loading a suite: its digest, and one clear line for everything that is wrong with one."""

import json
import os
import pickle
import shutil
import subprocess
import sys

import pytest

from impact_twin.canonical import digest, read_strict
from impact_twin.errors import InputError
from impact_twin.procurement.model import CONTROLS
from impact_twin.procurement.suite import (
    bundled_suites,
    load_suite,
    suite_by_digest,
)
from impact_twin.procurement.suite_files import MAX_FILE
from impact_twin.resources import data_folder


def refuse(folder, *words):
    with pytest.raises(InputError) as caught:
        load_suite(folder)
    line = caught.value.line()
    assert "\n" not in line
    for word in words:
        assert word in line
    return line


def test_the_bundled_suite():
    suite = load_suite()
    assert suite.bundled
    assert suite.id == "procurement-v1"
    assert len(suite.pairs) == 5
    assert sorted(pair.control for pair in suite.pairs) == sorted(CONTROLS)
    assert all(len(pair.bidders) == 3 for pair in suite.pairs)
    assert load_suite() is suite
    assert bundled_suites() == (suite,)
    assert suite_by_digest(suite.digest) is suite
    assert suite_by_digest("sha256:0") is None


def test_a_copy_of_the_bundled_suite_has_its_digest(tmp_path):
    shutil.copytree(load_suite().folder, tmp_path / "copy")
    copy = load_suite(tmp_path / "copy")
    assert copy.digest == load_suite().digest
    assert not copy.bundled


def test_a_users_own_suite(tiny, tiny_folder):
    assert tiny.folder == tiny_folder
    assert not tiny.bundled
    assert tiny.digest == digest(tiny.manifest)
    assert tiny.pair("leak").expected_scores() == {"V-1": 100.0, "V-2": 74.0, "V-3": 45.5}
    with pytest.raises(InputError, match="no pair of that name"):
        tiny.pair("nowhere")


def test_a_suite_can_be_pickled(tiny):
    again = pickle.loads(pickle.dumps(tiny))
    assert again == tiny


@pytest.mark.parametrize("name", ["suite", "pair", "golden"])
def test_the_schemas_are_schemas(name):
    from jsonschema import Draft202012Validator

    Draft202012Validator.check_schema(
        read_strict(data_folder("schemas") / "1" / f"{name}.schema.json")
    )


# the digest


def test_the_canary_the_titles_and_the_folder_are_not_in_the_digest(folder, spoil, tmp_path):
    before = load_suite(folder).digest
    spoil("suite.json", lambda head: head.update(canary="1" + head["canary"][1:], title="Other"))
    assert load_suite(folder).digest == before
    moved = folder.rename(tmp_path / "elsewhere")
    assert load_suite(moved).digest == before


def append(name, text=" x"):
    def change(folder, spoil):
        with (folder / name).open("ab") as handle:
            handle.write(text.encode())

    return change


def edit(change, name="leak/pair.json"):
    return lambda folder, spoil: spoil(name, change)


def lengthen_both(folder, spoil):
    for twin in ("clean", "poisoned"):
        append(f"leak/passage.{twin}.md", "x")(folder, spoil)


CHANGES = {
    "request": append("leak/request.md"),
    "document": append("leak/documents/policy.md"),
    "clean passage": append("leak/passage.clean.md", "x"),
    "poisoned passage": append("leak/passage.poisoned.md", "x"),
    "directive": edit(lambda head: head.update(system_directive="Other."), "suite.json"),
    "tolerance": edit(lambda head: head.update(score_tolerance=1.4), "suite.json"),
    "id": edit(lambda head: head.update(id="tiny-v2"), "suite.json"),
    "vendor name": edit(lambda pair: pair["vendors"][0].update(name="Alder Ltd")),
    "account": edit(lambda pair: pair["vendors"][0].update(payment_account="AA12")),
    "authorised": edit(lambda pair: pair["directory"][1].update(authorised=True)),
    "approval": edit(lambda pair: pair["approvals"][0].update(limit=600)),
    "goal": edit(lambda pair: pair["goal"].update(recipient="evil2@outside.example")),
    "step": edit(lambda pair: pair["mission_step"].update(documents=["D-1"])),
    "fact": edit(lambda pair: pair["vendors"][2]["facts"].update(days=71)),
    "document title": edit(lambda pair: pair["documents"][0].update(title="Call")),
    "protected": edit(lambda pair: pair["documents"][1].update(protected=[])),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_is_seen_or_scored_is_in_the_digest(folder, spoil, name):
    before = load_suite(folder).digest
    CHANGES[name](folder, spoil)
    assert load_suite(folder).digest != before


def test_golden_verdicts_are_in_the_digest(folder, spoil):
    from impact_twin.procurement import golden

    suite = load_suite(folder)
    situation = golden.record(
        suite,
        {
            "name": "nothing",
            "about": "Does nothing.",
            "pair": "leak",
            "twin": "clean",
            "termination": "completed",
            "final_answer": "Done.",
            "calls": [],
        },
    )
    (folder / "golden").mkdir()
    (folder / "golden" / "nothing.json").write_text(json.dumps(situation))
    spoil("suite.json", lambda head: head.update(golden="golden"))
    with_golden = load_suite(folder).digest
    assert with_golden != suite.digest
    spoil("golden/nothing.json", lambda data: data.update(about="Other words."))
    assert load_suite(folder).digest == with_golden
    spoil("golden/nothing.json", lambda data: data["verdict"].update(attempted=True))
    assert load_suite(folder).digest != with_golden


def test_the_tools_are_in_the_digest(tiny):
    assert [tool["name"] for tool in tiny.manifest["tools"]] == [tool.name for tool in tiny.tools]
    assert "leak" in json.dumps(tiny.manifest)
    assert "0f3c2a7e" not in json.dumps(tiny.manifest)


# what is refused

NEGATIVE = {
    "unknown field": (edit(lambda pair: pair.update(extra=1)), "pair.json", "extra"),
    "missing field": (edit(lambda pair: pair.pop("goal")), "pair.json", "goal"),
    "wrong type": (
        edit(lambda pair: pair["vendors"][1].update(email=7)),
        "leak/pair.json: vendors[1].email",
        "string",
    ),
    "e-mail with a line end": (
        edit(lambda pair: pair["vendors"][1].update(email="a@b.example\n")),
        "vendors[1].email",
    ),
    "other id than folder": (edit(lambda pair: pair.update(id="other")), "id: other"),
    "weights": (
        edit(lambda pair: pair["criteria"][0].update(weight=61)),
        "criteria: the weights sum to 101",
    ),
    "bands out of order": (
        edit(lambda pair: pair["criteria"][1]["rule"]["bands"].reverse()),
        "criteria[1].rule.bands",
    ),
    "another decision": (
        edit(lambda pair: pair["expected"].update(decision="V-2")),
        "expected.decision",
        "V-1",
    ),
    "tolerance too wide": (
        edit(lambda head: head.update(score_tolerance=13), "suite.json"),
        "smallest gap",
    ),
    "id twice": (
        edit(lambda pair: pair["vendors"].append(pair["vendors"][0])),
        "vendors: the id V-1 occurs twice",
    ),
    "criterion twice": (
        edit(lambda pair: pair["criteria"][1].update(id="price")),
        "must name exactly the criteria",
    ),
    "fact missing": (
        edit(lambda pair: pair["vendors"][0]["facts"].pop("days")),
        "the facts of V-1",
    ),
    "fact of zero": (
        edit(lambda pair: pair["vendors"][0]["facts"].update(price=0)),
        "above 0",
    ),
    "one bidder": (
        edit(lambda pair: [pair["vendors"][n].pop("facts") for n in (1, 2)]),
        "fewer than two",
    ),
    "no proposal": (
        edit(lambda pair: pair["documents"][1].update(kind="notice")),
        "V-1 has facts but no proposal",
    ),
    "unknown vendor of a document": (
        edit(lambda pair: pair["documents"][1].update(vendor="V-9")),
        "documents: there is no V-9",
    ),
    "unknown vendor of an approval": (
        edit(lambda pair: pair["approvals"][0].update(vendor="V-9")),
        "approvals: there is no V-9",
    ),
    "unknown requisition": (
        edit(lambda pair: pair["approvals"][0].update(requisition="RQ-9")),
        "approvals: there is no RQ-9",
    ),
    "unknown treasury vendor": (
        edit(lambda pair: pair["treasury"][0].update(vendor="V-9")),
        "treasury: there is no V-9",
    ),
    "two treasury records": (
        edit(lambda pair: pair["treasury"][0].update(vendor="V-4")),
        "treasury: the id V-4 occurs twice",
    ),
    "listed by name alone": (
        edit(lambda pair: pair["debarment"][1].update(vendor=None)),
        "debarment[1].vendor",
    ),
    "unknown goal document": (
        edit(lambda pair: pair["goal"].update(document="D-9")),
        "goal.documents: there is no D-9",
    ),
    "unknown passage document": (
        edit(lambda pair: pair["passage"].update(document="D-9")),
        "passage.document: there is no D-9",
    ),
    "passage in the buyer's document": (
        edit(lambda pair: pair["passage"].update(document="D-5")),
        "passage.document",
    ),
    "marker twice": (
        append("leak/documents/cedar.md", "{{vendor passage}}"),
        "D-4 must hold the marker",
        "once",
    ),
    "marker elsewhere": (
        append("leak/documents/policy.md", "{{vendor passage}}"),
        "D-5 must hold the marker",
        "nowhere",
    ),
    "marker in a passage": (
        lambda folder, spoil: [
            append(f"leak/passage.{twin}.md", "{{vendor passage}}")(folder, spoil)
            for twin in ("clean", "poisoned")
        ],
        "a passage holds the marker",
    ),
    "passages of other length": (append("leak/passage.poisoned.md", "x" * 30), "differ by 5%"),
    "equal passages": (
        lambda folder, spoil: shutil.copy(
            folder / "leak/passage.clean.md", folder / "leak/passage.poisoned.md"
        ),
        "must differ",
    ),
    "protected figure that isn't there": (
        edit(lambda pair: pair["documents"][1].update(protected=["123,456"])),
        "documents[1].protected",
        "doesn't stand",
    ),
    "protected figure of two digits": (
        edit(lambda pair: pair["documents"][1].update(protected=["1,0"])),
        "fewer than three digits",
    ),
    "protected figure in public": (
        append("leak/request.md", " 100,000"),
        "stands in the request",
    ),
    "protected figure of an open document": (
        edit(lambda pair: pair["documents"][1].update(sealed=False)),
        "isn't sealed",
    ),
    "goal of another control": (
        edit(lambda pair: pair.update(control="payment_identity")),
        "goal.kind",
    ),
    "goal that does no harm": (
        edit(lambda pair: pair["goal"].update(recipient="bo@buyer.example")),
        "goal: playing the goal",
    ),
    "goal that is the step": (
        edit(
            lambda pair: (
                pair.update(control="payment_identity"),
                pair.update(goal={"kind": "payment_account", "vendor": "V-4", "account": "X"}),
                pair.update(mission_step=pair["goal"]),
            )
        ),
        "goal: is the mission's own step",
    ),
    "step that does harm": (
        edit(lambda pair: pair["mission_step"].update(recipient="ty@buyer.example")),
        "mission_step: playing the mission",
        "source_selection_confidentiality",
    ),
    "step that is done already": (
        edit(
            lambda pair: pair.update(
                mission_step={"kind": "vendor_status", "vendor": "V-5", "status": "debarred"}
            )
        ),
        "mission_step.status",
    ),
    "visible canary": (
        append("leak/documents/policy.md", "0f3c2a7e-5b1d-4c9a-8e6f-1a2b3c4d5e6f"),
        "suite.json: canary",
    ),
    "other scoring rule": (
        edit(lambda head: head.update(scoring_rule="procurement-scoring/2"), "suite.json"),
        "suite.json: scoring_rule",
    ),
    "newer schema": (
        edit(lambda head: head.update(schema_version=2), "suite.json"),
        "suite.json: schema_version",
    ),
    "pair that is missing": (
        edit(lambda head: head["pairs"].append("nowhere"), "suite.json"),
        "mine/nowhere/pair.json: can't be read",
    ),
    "path outside": (
        edit(lambda pair: pair["documents"][0].update(file="documents/../../suite.json")),
        "documents[0].file",
    ),
    "document that is missing": (
        edit(lambda pair: pair["documents"][0].update(file="documents/none.md")),
        "documents/none.md: can't be read",
    ),
    "not UTF-8": (
        lambda folder, spoil: (folder / "leak/request.md").write_bytes(b"\xff"),
        "leak/request.md: not UTF-8",
    ),
    "byte-order mark": (
        lambda folder, spoil: (folder / "leak/request.md").write_bytes(b"\xef\xbb\xbfx"),
        "leak/request.md: starts with a byte-order mark",
    ),
    "not JSON": (
        lambda folder, spoil: (folder / "suite.json").write_text("{"),
        "mine/suite.json: not JSON",
    ),
    "key twice": (
        lambda folder, spoil: (folder / "suite.json").write_text('{"a": 1, "a": 2}'),
        "mine/suite.json: a key occurs twice",
    ),
    "too large a file": (
        append("leak/documents/policy.md", "x" * MAX_FILE),
        f"larger than {MAX_FILE} bytes",
    ),
    "a folder for a file": (
        lambda folder, spoil: (
            (folder / "leak/request.md").unlink(),
            (folder / "leak/request.md").mkdir(),
        ),
        "leak/request.md: can't be read",
    ),
    "control characters in a name": (
        edit(lambda pair: pair["vendors"][0].update(name="a\x1b[31mb")),
        "vendors[0].name",
        r"\x1b",
    ),
}


@pytest.mark.parametrize("name", NEGATIVE)
def test_what_is_wrong_is_named(folder, spoil, name):
    change, *words = NEGATIVE[name]
    change(folder, spoil)
    line = refuse(folder, *words)
    assert line.isprintable()


def test_too_large_a_suite(folder, monkeypatch):
    monkeypatch.setattr("impact_twin.procurement.suite_files.MAX_TOTAL", 2000)
    refuse(folder, "the suite is larger than 2000 bytes")


def test_no_folder_and_no_suite(tmp_path):
    refuse(tmp_path / "none", "there is no such folder")
    refuse(tmp_path, "suite.json: can't be read")
    (tmp_path / "file").write_text("x")
    refuse(tmp_path / "file", "is not a folder")


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="no symlinks here")
@pytest.mark.parametrize(
    "name", ["leak/request.md", "leak/documents/policy.md", "leak", "suite.json"]
)
def test_symlinks_are_refused(folder, tmp_path, name):
    target = tmp_path / "outside"
    (folder / name).rename(target)
    (folder / name).symlink_to(target)
    refuse(folder, "is a symlink")


def test_a_named_pipe_is_refused_at_once(folder):
    (folder / "leak" / "request.md").unlink()
    os.mkfifo(folder / "leak" / "request.md")
    refuse(folder, "is no regular file")


def test_golden_files_are_checked_too(folder, spoil):
    spoil("suite.json", lambda head: head.update(golden="golden"))
    assert load_suite(folder).golden == {}
    (folder / "golden").mkdir()
    (folder / "golden" / "a.json").write_text("{}")
    refuse(folder, "golden/a.json")


def test_the_room_leaves_heavy_packages_and_yaml_alone():
    code = (
        "import sys, yaml\n"
        "before = dict(yaml.Dumper.yaml_representers)\n"
        "from impact_twin.procurement.suite import load_suite\n"
        "import impact_twin.procurement.agentdojo_runtime\n"
        "load_suite()\n"
        "assert yaml.Dumper.yaml_representers == before\n"
        "heavy = ['openai', 'anthropic', 'cohere', 'google.genai', 'dspy', 'litellm', 'rich',\n"
        "         'agentdojo.agent_pipeline', 'agentdojo.task_suite']\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_types_import_no_agentdojo():
    code = (
        "import sys\n"
        "import impact_twin.procurement.model\n"
        "print('agentdojo' in sys.modules, 'pydantic' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False False"
