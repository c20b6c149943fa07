import json
import threading

import pytest
from leaderboard_samples import KEY, TRACE, attempt, identity_of, record, unresolved, write_lines

from impact_twin.canonical import digest
from impact_twin.errors import InputError
from impact_twin.leaderboard.plan import make_plan
from impact_twin.leaderboard.store import (
    RunStore,
    check_directory,
    differences,
    read_run,
    read_traces,
)


@pytest.fixture
def identity(protocol):
    return identity_of(protocol)


def test_what_is_appended_is_on_disk_before_append_returns(tmp_path, identity):
    with RunStore(tmp_path / "run", identity) as store:
        store.append(record(), {digest(TRACE): TRACE})
        run = read_run(tmp_path / "run")
        assert run.records == {KEY: record()}
        assert read_traces(tmp_path / "run") == {digest(TRACE): TRACE}
        assert run.identity == identity


def test_a_trace_is_stored_once(tmp_path, identity):
    other = KEY._replace(repeat=2)
    with RunStore(tmp_path / "run", identity) as store:
        store.append(record(), {digest(TRACE): TRACE})
        store.append(record(other), {digest(TRACE): TRACE})
    with RunStore(tmp_path / "run", identity) as store:
        store.append(
            record(KEY._replace(injection_task="injection_task_5")), {digest(TRACE): TRACE}
        )
    assert len((tmp_path / "run" / "traces.jsonl").read_text().splitlines()) == 1
    assert len(read_run(tmp_path / "run").records) == 3


def test_a_torn_last_line_is_cut_off_at_every_byte(tmp_path, identity):
    folder = tmp_path / "run"
    other = KEY._replace(repeat=2)
    with RunStore(folder, identity) as store:
        store.append(record(), {digest(TRACE): TRACE})
    path = folder / "records.jsonl"
    first = path.read_bytes()
    with RunStore(folder, identity) as store:
        store.append(record(other), {})
    whole = path.read_bytes()
    for cut in range(len(first), len(whole), 97):
        path.write_bytes(whole[:cut])
        assert set(read_run(folder).records) == {KEY}
        with RunStore(folder, identity) as store:
            assert path.read_bytes() == first
            store.append(record(other), {})
        assert set(read_run(folder).records) == {KEY, other}


def test_a_damaged_line_in_the_middle_is_an_error_and_not_skipped(tmp_path, identity):
    with RunStore(tmp_path / "run", identity) as store:
        store.append(record(), {})
        store.append(record(KEY._replace(repeat=2)), {})
    path = tmp_path / "run" / "records.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"utility":true', b'"utility":null', 1))
    with pytest.raises(InputError, match=r"line 1: damaged"):
        read_run(tmp_path / "run")


def test_a_flipped_last_line_counts_as_torn(tmp_path, identity):
    with RunStore(tmp_path / "run", identity) as store:
        store.append(record(), {})
    path = tmp_path / "run" / "records.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"utility":true', b'"utility":null', 1))
    assert read_run(tmp_path / "run").records == {}


CHANGES = [
    ("protocol digest", lambda i: i.update(protocol_digest=digest("other"))),
    ("repeat count", lambda i: i["plan"].update(repeats=3)),
    ("attack set", lambda i: i["plan"].update(attacks=["important_instructions"])),
    ("coverage mode", lambda i: i["plan"].update(coverage="full")),
    ("dspy version", lambda i: i["versions"].update(dspy="3.3.0b1")),
    ("agentdojo version", lambda i: i["versions"].update(agentdojo="0.1.36")),
    ("model id", lambda i: i["model"].update(id="local/m-2")),
    ("address", lambda i: i["model"].update(api_base="http://127.0.0.1:1/v1")),
    ("scoring rules", lambda i: i["rules"]["banking"].update(digest=digest("patched"))),
    ("stimulus digest", lambda i: i.update(stimulus_digest=digest("other"))),
]


@pytest.mark.parametrize(("name", "change"), CHANGES, ids=[name for name, _ in CHANGES])
def test_a_stored_result_is_reused_only_when_all_of_it_matches(tmp_path, identity, name, change):
    with RunStore(tmp_path / "run", identity) as store:
        store.append(record(), {})
    other = json.loads(json.dumps(identity))
    change(other)
    assert differences(identity, other) == [name]
    with pytest.raises(InputError, match=f"another {name}") as caught:
        RunStore(tmp_path / "run", other)
    assert "--force" in caught.value.line()
    # Refusing changes nothing, and the run goes on under its own identity.
    with RunStore(tmp_path / "run", identity) as store:
        assert set(store.run.records) == {KEY}


def test_force_discards_the_other_run(tmp_path, identity):
    with RunStore(tmp_path / "run", identity) as store:
        store.append(record(), {digest(TRACE): TRACE})
    other = json.loads(json.dumps(identity))
    other["model"]["id"] = "local/m-2"
    with RunStore(tmp_path / "run", other, force=True) as store:
        assert store.run.records == {}
    assert read_traces(tmp_path / "run") == {}


def test_force_discards_nothing_of_the_same_run(tmp_path, identity):
    with RunStore(tmp_path / "run", identity) as store:
        store.append(record(), {})
    with RunStore(tmp_path / "run", identity, force=True) as store:
        assert set(store.run.records) == {KEY}


def test_another_day_or_name_is_the_same_run(identity):
    other = json.loads(json.dumps(identity))
    other["started_on"] = "2026-02-02"
    other["model"]["display_name"] = "M"
    other["versions"]["python"] = "3.12"
    assert differences(identity, other) == []


def test_two_processes_cant_write_one_run(tmp_path, identity):
    with (
        RunStore(tmp_path / "run", identity),
        pytest.raises(InputError, match="another process is writing"),
    ):
        RunStore(tmp_path / "run", identity)
    with RunStore(tmp_path / "run", identity):
        pass


@pytest.mark.parametrize("what", ["file", "other files"])
def test_a_place_that_is_no_runs_folder_is_refused(tmp_path, identity, what):
    place = tmp_path / "x"
    if what == "file":
        place.write_text("mine", encoding="utf-8")
    else:
        place.mkdir()
        (place / "mine").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError):
        check_directory(place)
    with pytest.raises(InputError):
        RunStore(place, identity)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([record().to_json(), record(utility=False).to_json()], "recorded again"),
        ([unresolved().to_json(), record().to_json()], "recorded again"),
        ([unresolved(attack_succeeded=True).to_json(), record().to_json()], "recorded again"),
        ([record(KEY._replace(repeat=9)).to_json()], "the plan doesn't have"),
        ([record(KEY._replace(suite="travel")).to_json()], "the plan doesn't have"),
        ([{**record().to_json(), "surprise": 1}], "not a valid record"),
        ([{**record().to_json(), "utility": None}], "not a valid record"),
        ([{**unresolved().to_json(), "attack_succeeded": False}], "not a valid record"),
        ([{**unresolved().to_json(), "utility": True}], "not a valid record"),
        ([{**record().to_json(), "attack": "none"}], "not a valid record"),
        ([{**record().to_json(), "trace": "sha256:00"}], "not a valid record"),
    ],
)
def test_a_strangers_records_are_checked(tmp_path, identity, lines, told):
    with RunStore(tmp_path / "run", identity):
        pass
    write_lines(tmp_path / "run", lines)
    with pytest.raises(InputError, match=told):
        read_run(tmp_path / "run")


def test_a_later_try_of_an_unknown_result_counts_when_it_keeps_the_earlier_ones(tmp_path, identity):
    with RunStore(tmp_path / "run", identity):
        pass
    later = record(attempts=(*unresolved().attempts, attempt()))
    write_lines(tmp_path / "run", [unresolved().to_json(), later.to_json()])
    assert read_run(tmp_path / "run").records[KEY] == later


def test_a_protocol_that_isnt_the_one_named_is_refused(tmp_path, identity):
    with RunStore(tmp_path / "run", identity):
        pass
    path = tmp_path / "run" / "run.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["protocol"]["repeats"] = 5
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match="doesn't have the digest"):
        read_run(tmp_path / "run")


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan.update(repeats=5),
        lambda plan: plan.update(attacks=["direct"]),
        lambda plan: plan.update(attacks=["important_instructions", "other"]),
        lambda plan: plan["suites"].update(travel=plan["suites"]["banking"]),
        lambda plan: plan["suites"]["banking"].update(user_tasks=["user_task_0"]),
        lambda plan: plan.update(coverage="full") or plan["suites"]["banking"]["user_tasks"].pop(),
    ],
)
def test_a_plan_that_isnt_the_protocols_is_refused(tmp_path, identity, change):
    with RunStore(tmp_path / "run", identity):
        pass
    path = tmp_path / "run" / "run.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    change(content["plan"])
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match="isn't one of the run's protocol"):
        read_run(tmp_path / "run")


def test_a_trace_that_isnt_its_digest_is_refused(tmp_path, identity):
    with RunStore(tmp_path / "run", identity) as store:
        store.append(record(), {digest("x"): TRACE})
    with pytest.raises(InputError, match="isn't what its digest says"):
        read_traces(tmp_path / "run")


def test_many_threads_lose_nothing(tmp_path, identity, protocol):
    plan = make_plan(protocol)
    keys = [key for cell in plan.cells(benign=False) for key in plan.keys(cell)]
    with RunStore(tmp_path / "run", identity) as store:

        def write(part):
            for key in part:
                store.append(record(key), {digest(TRACE): TRACE})

        threads = [threading.Thread(target=write, args=(keys[place::4],)) for place in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(read_run(tmp_path / "run").records) == set(keys)
