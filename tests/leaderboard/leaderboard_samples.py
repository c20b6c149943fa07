"""Records and identities of runs, to store and to score."""

import json
import zlib
from dataclasses import replace

from impact_twin.canonical import digest
from impact_twin.leaderboard.plan import Key, make_plan
from impact_twin.leaderboard.records import Record
from impact_twin.leaderboard.store import RunStore, read_run

TRACE = {"turns": [], "events": [], "answer": "", "termination": "completed"}
KEY = Key("banking", "direct", "user_task_0", "injection_task_4", 1)


def attempt(termination="completed", error=None):
    return {
        "termination": termination,
        "error": error,
        "status": None,
        "requests": 2,
        "started_at": "2026-01-01T00:00:00+00:00",
        "duration_s": 1.0,
        "trace": digest(TRACE),
    }


def record(key=KEY, **changes):
    plain = Record(
        key=key,
        termination="completed",
        utility=True,
        attack_succeeded=None if key.injection_task is None else False,
        exposed=True,
        delivery="exact",
        ended_by="submit",
        trace=digest(TRACE),
        requests=2,
        with_tools=2,
        response_ids=("a", "b"),
        served_models=("m",),
        finishes=("tool_call", "tool_call"),
        usage={"input_tokens": 1, "output_tokens": 2},
        attempts=(attempt(),),
    )
    return replace(plain, **changes)


def unresolved(**changes):
    fields = {
        "termination": "infrastructure_error",
        "utility": None,
        "attack_succeeded": None,
        "attempts": (attempt("infrastructure_error", "down"),),
    }
    return record(**{**fields, **changes})


def identity_of(protocol, *, plan=None, model="local/m-1"):
    """The content of run.json for a protocol."""
    return {
        "kind": "impact-twin/leaderboard-run",
        "schema_version": 1,
        "model": {"id": model, "display_name": None, "api_base": None, "upstreams": []},
        "protocol": protocol.content,
        "protocol_digest": protocol.digest,
        "plan": (plan or make_plan(protocol)).to_json(),
        "versions": {"impact_twin": "0", "dspy": "3.4.1", "agentdojo": "0.1.35"},
        "stimulus_digest": digest("stimulus"),
        "rules": {"banking": {"digest": digest("rules")}},
        "cache": "off",
        "started_on": "2026-01-01",
    }


def write_lines(folder, records):
    """Write records.jsonl as a stranger would."""
    lines = []
    for content in records:
        text = json.dumps(content, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
        lines.append(f'{{"crc":"{zlib.crc32(text.encode()):08x}","record":{text}}}\n')
    (folder / "records.jsonl").write_text("".join(lines), encoding="ascii")


def stored(folder, protocol, fill, *, plan=None, benign=False, model="local/m-1"):
    """Store a run: `fill(key)` gives the fields of a record to change, or None for no record."""
    plan = plan or make_plan(protocol)
    identity = identity_of(protocol, plan=plan, model=model)
    with RunStore(folder, identity):
        pass
    lines = []
    for cell in plan.cells(benign=benign):
        for key in plan.keys(cell):
            changes = fill(key)
            if changes is not None:
                fields = {"response_ids": (f"id-{len(lines)}",), **changes}
                lines.append(record(key, **fields).to_json())
    write_lines(folder, lines)
    return read_run(folder)
