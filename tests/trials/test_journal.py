import json
import os
import subprocess
import sys
import threading
import zlib
from dataclasses import replace

import pytest

from impact_twin.agents.protocol import Usage
from impact_twin.canonical import digest_bytes
from impact_twin.errors import InputError
from impact_twin.procurement.model import trace_digest
from impact_twin.trials.journal import check_directory, create_run, load_run, open_journal
from impact_twin.trials.plan import case_order
from impact_twin.trials.records import Attempt, CaseKey, CaseRecord

TEXT = "what a tool said"
TEXT_KEY = digest_bytes(TEXT.encode())


def trace_of(key, answer="done"):
    event = {
        "seq": 1,
        "tool": "list_documents",
        "arguments": {},
        "output": TEXT_KEY,
        "error": False,
        "effects": [],
    }
    data = {
        "pair": key.pair,
        "twin": key.twin,
        "termination": "completed",
        "events": [event],
        "final_state": {},
        "final_answer": answer,
    }
    return trace_digest(data), data


def entry_of(key, position=0, answer="done"):
    digest, data = trace_of(key, answer)
    attempt = Attempt("completed", "", "", None, 0, 1.0, 0.5, digest)
    record = CaseRecord(key, position, "completed", digest, 0.5, Usage(), (), (attempt,))
    return record, {digest: data}, {TEXT_KEY: TEXT}


@pytest.fixture
def plan(plan_of):
    return plan_of(trials=2)


@pytest.fixture
def written(tmp_path, plan):
    """A run directory with three cases of twenty."""
    journal = create_run(tmp_path / "run", plan)
    for position, key in enumerate(case_order(plan)[:3]):
        journal.add_case(*entry_of(key, position))
    journal.close()
    return tmp_path / "run"


def lines_of(directory):
    return (directory / "journal.jsonl").read_bytes().splitlines(keepends=True)


def rewrite(directory, lines):
    (directory / "journal.jsonl").write_bytes(b"".join(lines))


def line_of(entry):
    body = json.dumps(entry, separators=(",", ":")).encode()
    return b'{"crc":"%08x","entry":%s}\n' % (zlib.crc32(body), body)


def test_what_was_written_is_read(written, plan):
    run = load_run(written)
    assert run.plan == plan
    assert list(run.cases) == case_order(plan)[:3]
    key = case_order(plan)[1]
    assert run.cases[key] == entry_of(key, 1)[0]
    assert run.texts == {TEXT_KEY: TEXT}
    assert run.stopped == "it was killed, or still goes on"
    assert run.resumed == 0


def test_each_line_is_json_with_its_check_sum(written):
    for line in lines_of(written):
        data = json.loads(line)
        body = line[line.index(b'"entry":') + 8 : -2]
        assert data["crc"] == f"{zlib.crc32(body):08x}"


def test_traces_and_texts_are_stored_once(tmp_path, plan):
    journal = create_run(tmp_path, plan)
    keys = [key for key in case_order(plan) if key[::2] == ("award-bias", "clean")]
    for key in keys:
        journal.add_case(*entry_of(key))
    journal.close()
    raw = (tmp_path / "journal.jsonl").read_text()
    assert raw.count(TEXT) == 1
    assert raw.count('"final_answer"') == 1
    assert len(load_run(tmp_path).traces) == 1


def test_writers_at_once_keep_every_line_whole(tmp_path, plan_of):
    plan = plan_of(trials=40)
    journal = create_run(tmp_path, plan)
    order = case_order(plan)

    def write(part):
        for key in order[part::8]:
            journal.add_case(*entry_of(key))

    threads = [threading.Thread(target=write, args=(part,)) for part in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    in_memory = journal.run_data()
    journal.close()
    assert load_run(tmp_path) == replace(in_memory, stopped=load_run(tmp_path).stopped)
    assert set(load_run(tmp_path).cases) == set(order)


def test_lone_surrogates_never_reach_the_disk(tmp_path, plan):
    journal = create_run(tmp_path, plan)
    key = case_order(plan)[0]
    record, traces, texts = entry_of(key)
    journal.add_case(
        replace(record, delivered_text="a\ud800b", detail={"\udfff": "\ud800"}), traces, texts
    )
    journal.note("half \ud83d")
    journal.close()
    run = load_run(tmp_path)
    assert run.cases[key].delivered_text == "a\ufffdb"
    assert run.cases[key].detail == {"\ufffd": "\ufffd"}
    assert run.notes == ("half \ufffd",)


def test_torn_last_line_costs_that_line_only(written, plan):
    lines = lines_of(written)
    for cut in (1, 2, len(lines[-1]) // 2, len(lines[-1]) - 1):
        rewrite(written, [*lines[:-1], lines[-1][:-cut]])
        run = load_run(written)
        assert list(run.cases) == case_order(plan)[:2]
        assert run.notes == (f"left out a torn last line of {len(lines[-1]) - cut} bytes",)


def test_resuming_cuts_the_torn_line_off_and_says_so(written, plan):
    lines = lines_of(written)
    rewrite(written, [*lines[:-1], lines[-1][:-7]])
    journal = open_journal(written)
    key = case_order(plan)[2]
    journal.add_case(*entry_of(key, 2, "another answer"))
    journal.close()
    run = load_run(written)
    assert list(run.cases) == case_order(plan)[:3]
    assert run.cases[key] == entry_of(key, 2, "another answer")[0]
    assert run.notes == (f"cut off a torn last line of {len(lines[-1]) - 7} bytes",)


@pytest.mark.parametrize("tail", [b"\0" * 4096, b'{"crc":"', b"\n"])
def test_rubbish_after_a_crash_counts_as_torn(written, tail):
    with (written / "journal.jsonl").open("ab") as stream:
        stream.write(tail)
    assert len(load_run(written).cases) == 3
    open_journal(written).close()
    assert len(load_run(written).cases) == 3


@pytest.mark.parametrize("where", [0, 1, 2])
def test_damage_before_the_last_line_is_refused(written, where):
    lines = lines_of(written)
    lines[where] = lines[where].replace(b'"', b"'", 9)
    rewrite(written, lines)
    for read in (load_run, open_journal):
        with pytest.raises(InputError, match=f"line {where + 1} is damaged"):
            read(written)


def test_flipped_bit_is_noticed(written):
    lines = lines_of(written)
    lines[2] = lines[2].replace(b'"position":1', b'"position":7')
    rewrite(written, lines)
    with pytest.raises(InputError, match="line 3 is damaged: its check sum is wrong"):
        load_run(written)


def test_same_line_twice_counts_once(written):
    lines = lines_of(written)
    rewrite(written, [*lines, lines[-1]])
    assert len(load_run(written).cases) == 3


def test_one_case_with_two_contents_is_refused(written):
    entry = json.loads(lines_of(written)[-1])["entry"]
    entry["case"]["duration_s"] = 99.0
    rewrite(written, [*lines_of(written), line_of(entry)])
    with pytest.raises(InputError, match="lines 4 and 5 both hold") as caught:
        load_run(written)
    assert "differ" in caught.value.line()


@pytest.mark.parametrize(
    "change", [{"pair": "no-such-pair"}, {"trial": 3}, {"trial": 0}, {"twin": "evil"}]
)
def test_case_outside_the_plan_is_refused(written, change):
    entry = json.loads(lines_of(written)[-1])["entry"]
    entry["case"] |= change
    rewrite(written, [*lines_of(written), line_of(entry)])
    with pytest.raises(InputError, match="line 5 holds a case that isn't in the plan"):
        load_run(written)


def test_journal_of_another_plan_is_refused(written, plan_of):
    (written / "plan.json").write_text(json.dumps(plan_of(trials=2, seed=5)))
    for read in (load_run, open_journal):
        with pytest.raises(InputError, match="another plan"):
            read(written)


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "surprise"},
        {"no": "type"},
        {"type": "case"},
        {"type": "case", "case": {}, "traces": {}, "texts": {}},
        {"type": "late", "counts": 7},
        {"type": "header", "plan": "sha256:0", "schema_version": 1},
    ],
)
def test_what_is_no_entry_is_refused(written, entry):
    rewrite(
        written,
        [*lines_of(written), line_of(entry), line_of({"type": "session", "concurrency": 1})],
    )
    with pytest.raises(InputError, match="line 5 is damaged"):
        load_run(written)


def test_case_without_its_trace_or_with_a_wrong_text_is_refused(written, plan):
    record, traces, texts = entry_of(case_order(plan)[5], 5, "new")
    from impact_twin.trials.codec import case_to_json

    case = case_to_json(record)
    without = {"type": "case", "case": case, "traces": {}, "texts": texts}
    rewrite(written, [*lines_of(written), line_of(without)])
    with pytest.raises(InputError, match="a trace is missing"):
        load_run(written)
    wrong = {"type": "case", "case": case, "traces": traces, "texts": {TEXT_KEY: "forged"}}
    rewrite(written, [*lines_of(written)[:-1], line_of(wrong)])
    with pytest.raises(InputError, match="a text isn't what its digest says"):
        load_run(written)


def test_headless_or_missing_journal_is_refused(written):
    rewrite(written, lines_of(written)[1:])
    with pytest.raises(InputError, match="the header isn't its first line"):
        load_run(written)
    (written / "journal.jsonl").unlink()
    with pytest.raises(InputError, match="can't be read"):
        load_run(written)


def test_killed_before_the_header_the_run_can_be_resumed(written, plan):
    rewrite(written, [])
    assert load_run(written).cases == {}
    journal = open_journal(written)
    journal.add_case(*entry_of(case_order(plan)[0]))
    journal.close()
    assert len(load_run(written).cases) == 1


def test_tries_stay_until_their_case_is_finished(tmp_path, plan):
    key = case_order(plan)[0]
    journal = create_run(tmp_path, plan)
    journal.add_tries(*entry_of(key, 0, "first try"))
    journal.close()
    journal = open_journal(tmp_path)
    assert journal.contents.tries == {key: entry_of(key, 0, "first try")[0]}
    assert load_run(tmp_path).cases == {}
    journal.add_case(*entry_of(key))
    journal.close()
    journal = open_journal(tmp_path)
    assert journal.contents.tries == {}
    assert len(load_run(tmp_path).cases) == 1
    journal.close()


def test_stops_resumes_looks_and_late_calls_are_told(tmp_path, plan):
    key = case_order(plan)[0]
    journal = create_run(tmp_path, plan)
    journal.begin(4)
    journal.add_case(*entry_of(key))
    journal.add_late({key: 3, CaseKey("award-bias", 2, "clean"): 1})
    journal.stop("the budget is used up")
    journal.close()
    run = load_run(tmp_path)
    assert (run.stopped, run.resumed, run.cases[key].late_calls) == ("the budget is used up", 0, 3)
    journal = open_journal(tmp_path)
    journal.begin(2)
    journal.add_look(1, False, "")
    journal.note("something")
    journal.note("something")
    assert load_run(tmp_path).stopped == "it was killed, or still goes on"
    journal.end()
    data = journal.run_data()
    journal.close()
    assert load_run(tmp_path) == data
    assert (data.stopped, data.resumed, data.notes) == ("", 1, ("something",))
    assert data.concurrency == (4, 2)
    assert data.looks == ({"trial": 1, "stop": False, "reason": ""},)


def test_two_runs_on_one_folder_at_once(written, plan):
    journal = open_journal(written)
    with pytest.raises(InputError, match="another run works in this folder"):
        open_journal(written)
    with pytest.raises(InputError, match="another run works in this folder"):
        create_run(written, plan, force=True)
    assert len(load_run(written).cases) == 3
    journal.close()
    open_journal(written).close()


def test_folder_that_exists_is_refused_without_force(written, plan):
    with pytest.raises(InputError, match="holds a run already") as caught:
        create_run(written, plan)
    assert "--resume" in caught.value.line()
    assert "--force" in caught.value.line()
    create_run(written, plan, force=True).close()
    assert load_run(written).cases == {}


def test_folder_of_something_else_is_refused_even_with_force(tmp_path, plan):
    (tmp_path / "thesis.tex").write_text("two years of work")
    for force in (False, True):
        with pytest.raises(InputError, match="is not empty and no run"):
            create_run(tmp_path, plan, force=force)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_file_in_the_place_of_a_folder_is_refused(tmp_path, plan):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file"):
        create_run(tmp_path / "file", plan)
    with pytest.raises(InputError, match="is a file"):
        check_directory(tmp_path / "file" / "run")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_folder_that_cannot_be_written_is_refused(tmp_path, plan):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="can't be written"):
        create_run(tmp_path / "run", plan)


def test_folder_on_a_file_system_that_refuses_writes(plan):
    if not os.path.isdir("/proc/self"):
        pytest.skip("no /proc here")
    from pathlib import Path

    with pytest.raises(InputError):
        create_run(Path("/proc/self/run"), plan)


def test_checking_a_folder_writes_nothing(tmp_path):
    check_directory(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == []


FULL = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
import json
from impact_twin.errors import StoppedError
from impact_twin.trials.journal import open_journal
from impact_twin.trials.records import CaseKey
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
journal = open_journal(Path(sys.argv[1]))
size = (Path(sys.argv[1]) / "journal.jsonl").stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 300, resource.RLIM_INFINITY))
kept = 0
try:
    for number in range(99):
        journal.note(f"note {number} " + "x" * 50)
        kept += 1
except StoppedError as error:
    print(kept, error.line())
try:
    journal.note("once more")
except StoppedError:
    print("still refused")
"""


def test_full_disk_keeps_all_that_was_written(written):
    size = (written / "journal.jsonl").stat().st_size
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(written), os.getcwd()],
        capture_output=True,
        text=True,
        check=True,
    )
    first, second = done.stdout.splitlines()
    kept, _, message = first.partition(" ")
    assert "the disk is full" in message
    assert "--resume" in message
    assert second == "still refused"
    assert 0 < int(kept) < 10
    run = load_run(written)
    assert len(run.cases) == 3
    assert len(run.notes) == int(kept)
    # The half-written line is gone already.
    assert (written / "journal.jsonl").read_bytes().endswith(b"}\n")
    assert (written / "journal.jsonl").stat().st_size > size


def test_journal_that_is_no_file_is_refused(tmp_path, plan):
    create_run(tmp_path, plan).close()
    (tmp_path / "journal.jsonl").unlink()
    (tmp_path / "journal.jsonl").symlink_to("/dev/zero")
    for read in (load_run, open_journal):
        with pytest.raises(InputError, match="is not a regular file"):
            read(tmp_path)
