"""The mutations of the tamper suite: generated from a base bundle, each with a name.

A mutation is (kind, name, level, change): `change` alters a copy of the bundle in place, and
`reseal` at `level` then makes it as consistent as it can be. None of them leaves an honest file;
what would is in test_what_cannot_be_told.py.
"""

import copy
import json

from proofrun_tamper import TWINS, at, leaves, objects, put, reseal

CLASSES = (
    "compromised", "unsafe_baseline", "unresolved", "attempted", "incapable", "unexposed",
    "derailed", "swayed", "resisted",
)  # fmt: skip
ENDS = ("completed", "agent_error", "timeout", "limit", "refused", "infrastructure_error")
CONTROLS = (
    "impartial_evaluation", "source_selection_confidentiality", "payment_identity",
    "vendor_master_data", "award_authority",
)  # fmt: skip


def outcomes(base):
    """Another class, other reasons, other marks of a pair-trial."""
    for place, row in enumerate(base["report"]["pair_trials"]):
        here = ("report", "pair_trials", place)
        for word in CLASSES:
            if word != row["outcome"]:
                yield f"{place} {word}", "figures", setter((*here, "outcome"), word)
        for mark in ("targeted", "toward_attacker"):
            yield f"{place} {mark}", "figures", setter((*here, mark), not row[mark])
        other = [] if row["reasons"] else ["clean_not_known"]
        yield f"{place} reasons", "figures", setter((*here, "reasons"), other)


def verdicts(base):
    """Another verdict on a trace; classes and figures follow it."""
    for place, (name, entry) in enumerate(base["report"]["traces"].items()):
        here = ("report", "traces", name)
        for field in ("mission_completed", "goal_reached", "attempted"):
            yield f"{place} {field}", "outcomes", setter((*here, field), not entry[field])
        other = {
            "violations": [] if entry["violations"] else ["award_authority"],
            "reverted": [] if entry["reverted"] else ["vendor_master_data"],
            "missing": [] if entry["missing"] else ["answer"],
            "served": None if entry["served"] else 1,
            "calls_after": entry["calls_after"] + 1,
            "decision": None
            if entry["decision"]
            else next(iter(entry["final_state"]["payment_accounts"])),
            "flags": [] if entry["flags"] else ["D-101"],
        }
        for field, value in other.items():
            yield f"{place} {field}", "outcomes", setter((*here, field), value)


def traces(base):
    """Events that the world does not give; every verdict, class and figure follows them."""
    report = base["report"]
    texts = list(report["texts"])
    for place, (name, entry) in enumerate(report["traces"].items()):
        events = entry["events"]
        here = ("report", "traces", name, "events")
        acting = [seq for seq, event in enumerate(events) if event["effects"]]
        chosen = sorted({0, len(events) // 2, len(events) - 1} & set(range(len(events))))
        for seq in chosen:
            event = events[seq]
            other = next(text for text in texts if text != event["output"])
            yield f"{place}.{seq} output", "verdicts", setter((*here, seq, "output"), other)
            yield (
                f"{place}.{seq} error",
                "verdicts",
                setter((*here, seq, "error"), not event["error"]),
            )
            yield f"{place}.{seq} seq", "verdicts", setter((*here, seq, "seq"), event["seq"] + 1)
            tool = "get_approval" if event["tool"] == "issue_award" else "issue_award"
            if not event["error"]:  # two tools may refuse a call in the same words
                yield f"{place}.{seq} tool", "verdicts", setter((*here, seq, "tool"), tool)
            yield f"{place}.{seq} twice", "verdicts", twice((*here, seq))
        for seq in acting[-3:]:
            yield f"{place}.{seq} no effect", "verdicts", setter((*here, seq, "effects"), [])
            yield f"{place}.{seq} dropped", "verdicts", dropped(here, seq)
            yield f"{place}.{seq} vendor", "verdicts", argument((*here, seq), "V-999")


def states(base):
    """Final states that the calls don't lead to; everything derived follows them."""
    for place, (name, entry) in enumerate(base["report"]["traces"].items()):
        state = entry["final_state"]
        here = ("report", "traces", name, "final_state")
        vendor = next(iter(state["payment_accounts"]))
        other = {
            "recommendation": None if state["recommendation"] else vendor,
            "evaluations": {} if state["evaluations"] else {vendor: 50},
            "messages": []
            if state["messages"]
            else [{"id": "M-1", "recipient": "a@b", "documents": []}],
            "awards": [] if state["awards"] else [{"id": "A-1"}],
            "flags": [] if state["flags"] else ["D-101"],
            "payment_accounts": {**state["payment_accounts"], vendor: "ZX00 0000"},
            "vendor_statuses": {**state["vendor_statuses"], vendor: "suspended"},
            "clock": 1,
        }
        for field, value in other.items():
            yield f"{place} {field}", "verdicts", setter((*here, field), value)
        for field in ("evaluations", "flags", "recommendation"):
            yield f"{place} no {field}", "verdicts", remover((*here, field))
        for wrong in ([], "x", True):
            yield (
                f"{place} evaluations {wrong!r}",
                "verdicts",
                setter((*here, "evaluations"), wrong),
            )
        for who, score in state["evaluations"].items():
            yield f"{place} {who} true", "verdicts", setter((*here, "evaluations", who), True)
            yield f"{place} {who} text", "verdicts", setter((*here, "evaluations", who), str(score))


def terminations(base):
    """Another end of a case: in the case alone, with its try, or with its trace as well."""
    for place, row in enumerate(base["report"]["pair_trials"]):
        for twin in TWINS:
            case = row[twin]
            for end in ENDS:
                if end == case["termination"]:
                    continue
                here = ("report", "pair_trials", place, twin)
                yield f"{place} {twin} {end} alone", "outcomes", setter((*here, "termination"), end)
                yield f"{place} {twin} {end} and its try", "outcomes", ended(here, end, trace=False)
                if "error" not in case["attempts"][-1] or end == "completed":
                    yield (
                        f"{place} {twin} {end} and trace",
                        "verdicts",
                        ended(here, end, trace=True),
                    )
            yield (
                f"{place} {twin} hidden",
                "outcomes",
                hidden(("report", "pair_trials", place, twin)),
            )


def rows(base):
    """Trials, pairs and cases dropped, duplicated, swapped or cloned."""
    report = base["report"]
    count, trials = len(report["pair_trials"]), report["plan"]["trials"]
    here = ("report", "pair_trials")
    for place in range(count):
        yield f"{place} dropped", "outcomes", remover((*here, place))
        yield f"{place} twice", "outcomes", twice((*here, place))
        yield (
            f"{place} twins swapped",
            "outcomes",
            swapped((*here, place, "clean"), (*here, place, "poisoned")),
        )
        if place:
            yield f"{place} swapped", "outcomes", swapped((*here, place - 1), (*here, place))
            for twin in TWINS:
                one, other = (*here, place - 1, twin, "trace"), (*here, place, twin, "trace")
                yield f"{place} {twin} traces swapped", "outcomes", swapped(one, other)
                yield f"{place} {twin} trace of another pair", "outcomes", copied(one, other)
    for place in range(count - 5):
        yield f"{place} cloned", "outcomes", cloned(place, place + 5, TWINS)
        for twin in TWINS:
            if len(report["pair_trials"][place][twin]["model_calls"]) > 1:
                yield f"{place} {twin} cloned", "outcomes", cloned(place, place + 5, (twin,))
    for pair in report["plan"]["pairs"]:
        yield f"{pair} dropped", "outcomes", without_pair(pair, full=True)
        yield f"{pair} dropped, and said", "outcomes", without_pair(pair, full=False)
        yield f"{pair} renamed", "digests", renamed(pair, f"{pair}-2")
    yield "first trial dropped", "outcomes", first_trial_dropped
    for more in (-1, 1, 10):
        yield f"{more} trials", "outcomes", setter(("report", "plan", "trials"), trials + more)
        yield f"{more} trials planned", "outcomes", more_trials(more)


def records(base):
    """Tries, positions, times, usage and requests that contradict each other."""
    for place, row in enumerate(base["report"]["pair_trials"]):
        for twin in TWINS:
            case = row[twin]
            here = ("report", "pair_trials", place, twin)
            name = f"{place} {twin}"
            yield f"{name} position", "outcomes", setter((*here, "position"), case["position"] + 1)
            yield f"{name} no position", "outcomes", setter((*here, "position"), None)
            yield f"{name} longer", "figures", setter((*here, "duration_s"), case["duration_s"] + 1)
            yield f"{name} no try", "figures", setter((*here, "attempts"), [])
            yield f"{name} tried again", "figures", twice((*here, "attempts", 0))
            yield f"{name} shorter try", "figures", setter((*here, "attempts", 0, "duration_s"), 0)
            word = None if case["delivered"] else "intact"
            yield f"{name} delivered", "figures", setter((*here, "delivered"), word)
            if len(case["attempts"]) > 1:
                yield f"{name} try dropped", "figures", remover((*here, "attempts", 0))
            if case["model_calls"]:
                yield f"{name} fewer requests", "figures", fewer_requests(here)
            if case["usage"] and case["model_calls"]:
                yield f"{name} no usage", "figures", setter((*here, "usage"), None)
            if len(case["model_calls"]) > 1 and case["model_calls"][-1]["usage"]:
                yield f"{name} call dropped", "figures", remover((*here, "model_calls", -1))
                yield f"{name} tokens", "figures", adder((*here, "usage", "input_tokens"), 1)
                yield f"{name} cost", "figures", adder((*here, "usage", "cost_usd"), 0.5)


def plans(base):
    """Another plan or identity than the one that was run."""
    report, run = base["report"], ("report", "identity", "run")
    for seed in range(1, 9):
        yield f"seed {seed}", "outcomes", setter((*run, "seed"), seed)
    for retries in (0, 1, 3, 5, 100, 101):
        yield f"retries {retries}", "outcomes", setter((*run, "limits", "retries"), retries)
    for seconds in (30, 1e9, -1, 0):
        yield f"timeout {seconds}", "outcomes", setter((*run, "limits", "timeout_s"), seconds)
    for calls in (1, 5, 0, -1):
        yield f"tool calls {calls}", "outcomes", setter((*run, "limits", "max_tool_calls"), calls)
    suite = ("report", "identity", "suite")
    yield "suite id", "outcomes", setter((*suite, "id"), "procurement-v2")
    yield "suite not bundled", "outcomes", setter((*suite, "bundled"), False)
    yield "suite digest", "outcomes", setter((*suite, "digest"), "sha256:" + "0" * 64)
    yield "agent kind", "outcomes", setter(("report", "identity", "agent", "kind"), "model")
    yield "spec kind", "outcomes", setter(("report", "plan", "spec", "kind"), "model")
    plan = ("report", "plan")
    yield "not full", "outcomes", setter((*plan, "full_suite"), False)
    yield "pairs reversed", "outcomes", setter((*plan, "pairs"), report["plan"]["pairs"][::-1])
    for confidence in (0.5, 0.9, 0.99):
        yield f"confidence {confidence}", "digests", setter((*plan, "confidence"), confidence)
    for confidence in (0, 1, -1, 1.5, "0.95", None):
        yield f"confidence {confidence}", "digests", setter((*plan, "confidence"), confidence)
    yield "resumed, unsaid", "digests", setter((*run, "resumed"), 1)
    yield "resumed, without a session", "digests", setter((*run, "resumed"), 2)
    yield "no session", "digests", setter((*run, "concurrency"), [])
    yield "note, unsaid", "digests", setter((*run, "notes"), ["a note"])
    yield "stopped, unsaid", "digests", setter((*run, "stopped"), "out of luck")
    yield "looks in disorder", "figures", setter((*run, "looks"), [look(2), look(1)])
    yield "look beyond the plan", "figures", setter((*run, "looks"), [look(3)])
    yield "instances", "digests", setter(("report", "identity", "agent", "instances"), "shared")
    for place, row in enumerate(report["pair_trials"]):
        here = ("report", "pair_trials", place)
        first = "poisoned" if row["first"] == "clean" else "clean"
        yield f"{place} first", "figures", setter((*here, "first"), first)
        yield f"{place} order", "figures", setter((*here, "order"), row["order"] + 1)


def texts(base):
    """Suite texts and outputs changed, added or left out; digests follow."""
    report = base["report"]
    for place, (name, text) in enumerate(report["texts"].items()):
        here = ("report", "texts", name)
        yield f"{place} longer", "verdicts", setter(here, text + " ")
        if place % 3 == 0:
            yield (
                f"{place} hostile",
                "verdicts",
                setter(here, "\x1b[31m\u202e<script>alert(1)</script>"),
            )
        yield f"{place} left out", "digests", remover(here)
    yield "extra text", "digests", setter(("report", "texts", "sha256:" + "1" * 64), "never said")
    name, entry = next(iter(report["traces"].items()))
    extra = {**copy.deepcopy(entry), "final_answer": "another run"}
    yield "extra trace", "digests", setter(("report", "traces", "sha256:" + "1" * 64), extra)
    for name in list(report["traces"])[:5]:
        yield f"{name} left out", "digests", remover(("report", "traces", name))


def figures(base):
    """A figure of the summary that the pair-trials don't give."""
    summary = base["report"]["summary"]
    found = [(path, leaf) for path, leaf in leaves(summary) if path[0] != "gates"]
    for path, leaf in found[:: max(1, len(found) // 250)]:
        name = ".".join(map(str, path))
        yield name, "digests", setter(("report", "summary", *path), _other(leaf))


def types(base):
    """A value of another JSON type."""
    free = ("traces", "texts")
    report = base["report"]
    found = [
        (("report", *path), leaf)
        for path, leaf in leaves(report)
        if path[0] not in free
        and path[:2] not in (("identity", "agent"), ("identity", "versions"), ("plan", "spec"))
        and path[:2] != ("plan", "platform")
    ]
    wrong = ("0", [], {}, True, 0.5, None)
    step = max(1, len(found) // 80)
    for place, (path, leaf) in enumerate(found[::step]):
        value = wrong[place % len(wrong)]
        if type(value) is type(leaf) or leaf is None or value is None:  # null may be a fine claim
            value = {"a": 1}
        yield ".".join(map(str, path)), "digests", setter(path, value)


def fields(base):
    """An unknown field added, or a field left out."""
    free = {"agent", "spec", "versions", "platform"}
    seen = set()
    for path, value in objects({key: item for key, item in base.items() if key != "report"}):
        yield from _field_changes(path, value)
    for path, value in objects(base["report"]):
        # One of each kind of object is enough; names of traces and texts are no fields.
        kind = tuple(
            "#" if isinstance(part, int) or part[:7] == "sha256:" else part for part in path
        )
        if kind in seen or free & set(kind) or "final_state" in kind or "arguments" in kind:
            continue
        seen.add(kind)
        if kind[-1:] not in (("traces",), ("texts",), ("effects",)) and "effects" not in kind:
            yield from _field_changes(("report", *path), value)


def claims(base):
    """An envelope that isn't of its form."""
    other = {
        ("kind",): ["impact-twin/report", "", None, "x" * 10_000],
        ("schema_version",): [0, 2, 10**15, "1", True, 1.5],
        ("statement",): ["Certainty guaranteed.", ""],
        ("submission", "submitter"): ["somebody", "@", "@a b", "@" + "a" * 60, "@a\u202eb", "@a\n"],
        ("submission", "source"): [
            "http://example.org", "javascript:alert(1)", "https://user:key@example.org/x",
            "https://example.org/\u202e", "https://", "https://example.org/" + "a" * 500, "",
        ],
        ("submission", "notes"): ["n" * 2001, None],
        ("producer", "impact_twin"): ["<b>1</b>", "", "1" * 100],
        ("ci",): [[], "github", {"provider": "github-actions"}, _ci(run_id=-1), _ci(run_id="7"),
                  _ci(provider="elsewhere"), _ci(run_attempt=0), _ci(run_number=1.5),
                  _ci(sha="s" * 500), _ci(extra="x")],
        ("digests", "report"): ["sha256:" + "0" * 64, "sha256:" + "A" * 64, "md5:0"],
    }  # fmt: skip
    for path, values in other.items():
        for place, value in enumerate(values):
            yield f"{'.'.join(path)} {place}", None, setter(path, value)
    for name in base["digests"]:
        yield f"digest of {name}", None, setter(("digests", name), "sha256:" + "2" * 64)


KINDS = {
    "outcomes": (outcomes, {"outcomes"}),
    "verdicts": (verdicts, {"verdicts"}),
    "traces": (traces, {"schema", "plan", "verdicts", "texts", "cases", "replay"}),
    "states": (states, {"verdicts", "replay"}),
    "terminations": (terminations, {"plan", "traces", "cases", "schedule", "outcomes"}),
    "rows": (rows, {"schema", "suite", "plan", "traces", "cases", "schedule", "copies"}),
    "records": (records, {"plan", "traces", "figures", "cases", "schedule"}),
    "plans": (plans, {"schema", "suite", "plan", "figures", "cases", "schedule"}),
    "texts": (texts, {"plan", "traces", "texts", "cases", "replay"}),
    "figures": (figures, {"schema", "plan", "figures"}),
    "types": (types, {"schema", "plan", "figures"}),
    "fields": (fields, {"schema"}),
    "claims": (claims, {"schema", "digests"}),
}
"""Each kind with its generator and the checks that may catch it."""


def chosen(kind, base, most=55):
    """Mutations of a kind, at most so many of them, spread over all."""
    every = list(KINDS[kind][0](base))
    step = max(1, -(-len(every) // most))
    return every[::step]


def try_all(mutations, kind, text, suite, verifier):
    """Yield the name of the check that catches each mutation.

    Raises:
        AssertionError: one is accepted, is caught too early or too late, or makes a check stumble.
    """
    base = json.loads(text)
    for name, level, change in mutations:
        bundle = json.loads(text)
        change(bundle)
        assert json.dumps(bundle) != json.dumps(base), f"{kind}: {name} changes nothing"
        if level is not None:
            reseal(bundle, suite, level, base)
        failed = next(
            (item for item in verifier.verify_value(bundle) if item.status == "failed"), None
        )
        assert failed, f"{kind}: {name} was accepted"
        assert failed.name in KINDS[kind][1], f"{kind}: {name} was caught by {failed}"
        assert "can't be made" not in failed.message, f"{kind}: {name}: {failed}"
        yield failed.name


def setter(path, value):
    return lambda bundle: put(bundle, path, copy.deepcopy(value))


def adder(path, more):
    return lambda bundle: put(bundle, path, at(bundle, path) + more)


def remover(path):
    return lambda bundle: at(bundle, path[:-1]).__delitem__(path[-1])


def twice(path):
    def change(bundle):
        items = at(bundle, path[:-1])
        items.insert(path[-1], copy.deepcopy(items[path[-1]]))

    return change


def swapped(one, other):
    def change(bundle):
        first, second = at(bundle, one), at(bundle, other)
        put(bundle, one, second)
        put(bundle, other, first)

    return change


def copied(source, target):
    return lambda bundle: put(bundle, target, copy.deepcopy(at(bundle, source)))


def dropped(events, place):
    """Leave an event out and count the others anew; the final state stays."""

    def change(bundle):
        items = at(bundle, events)
        del items[place]
        for seq, event in enumerate(items, 1):
            event["seq"] = seq

    return change


def argument(event, vendor):
    """Change an argument that an effect came from, and leave the effect."""

    def change(bundle):
        given = at(bundle, event)["arguments"]
        name = next(name for name in ("vendor_id", "document_id", "recipient") if name in given)
        given[name] = vendor

    return change


def ended(case, end, *, trace):
    def change(bundle):
        record = at(bundle, case)
        record["termination"] = record["attempts"][-1]["termination"] = end
        if trace:
            old = bundle["report"]["traces"][record["trace"]]
            name = f"new {record['trace']}"
            bundle["report"]["traces"][name] = {**copy.deepcopy(old), "termination": end}
            record["trace"] = name
            forget(bundle["report"])

    return change


def hidden(case):
    """Say that a case never ran."""

    def change(bundle):
        record = at(bundle, case)
        record.clear()
        record.update(
            termination="not_run", trace=None, position=None, duration_s=0, usage=None,
            model_calls=[], attempts=[], delivered=None, late_calls=0,
        )  # fmt: skip
        forget(bundle["report"])

    return change


def cloned(source, target, twins):
    """Put the cases of one pair-trial in the place of another's; positions stay."""

    def change(bundle):
        report = bundle["report"]
        for twin in twins:
            kept = report["pair_trials"][target][twin]["position"]
            clone = copy.deepcopy(report["pair_trials"][source][twin])
            report["pair_trials"][target][twin] = {**clone, "position": kept}
        forget(report)

    return change


def without_pair(pair, *, full):
    def change(bundle):
        report = bundle["report"]
        report["plan"]["pairs"].remove(pair)
        report["plan"]["full_suite"] = full
        report["pair_trials"] = [row for row in report["pair_trials"] if row["pair"] != pair]
        forget(report)

    return change


def renamed(pair, name):
    def change(bundle):
        report = bundle["report"]
        pairs = report["plan"]["pairs"]
        pairs[pairs.index(pair)] = name
        for row in (
            *report["pair_trials"],
            *report["traces"].values(),
            *report["summary"]["pairs"],
        ):
            if row["pair"] == pair:
                row["pair"] = name

    return change


def first_trial_dropped(bundle):
    report = bundle["report"]
    report["plan"]["trials"] -= 1
    report["plan"]["most_trials"] -= 1
    report["pair_trials"] = [
        {**row, "trial": row["trial"] - 1} for row in report["pair_trials"] if row["trial"] > 1
    ]
    forget(report)


def more_trials(more):
    def change(bundle):
        for name in ("trials", "most_trials"):
            bundle["report"]["plan"][name] += more

    return change


def fewer_requests(case):
    def change(bundle):
        for attempt in at(bundle, case)["attempts"]:
            attempt["requests"] = 0

    return change


def look(trial):
    return {"trial": trial, "stop": False, "reason": ""}


def forget(report):
    """Leave out traces and texts that nothing names any more."""
    named = set()
    for row in report["pair_trials"]:
        for twin in TWINS:
            case = row[twin]
            named.add(case["trace"])
            named.update(attempt.get("trace") for attempt in case["attempts"])
    report["traces"] = {name: entry for name, entry in report["traces"].items() if name in named}
    texts = {event["output"] for entry in report["traces"].values() for event in entry["events"]}
    for row in report["pair_trials"]:
        for twin in TWINS:
            texts.update(row[twin][key] for key in ("detail", "delivered_text") if key in row[twin])
    report["texts"] = {name: text for name, text in report["texts"].items() if name in texts}


def _field_changes(path, value):
    name = ".".join(map(str, path)) or "top"
    sealed = path in (("digests",), ("report", "plan"))  # resealing would put these back
    level = None if sealed else "digests"
    yield f"{name} extra", level, lambda bundle: at(bundle, path).update(surprise=1)
    for key in value:
        if key not in ("delivered_text", "detail", "trace", "error") or "case" in name:
            yield f"{name}.{key} left out", level, remover((*path, key))


def _other(leaf):
    if isinstance(leaf, bool):
        return not leaf
    if isinstance(leaf, int):
        return leaf + 1
    if isinstance(leaf, float):
        return leaf + 3e-12
    if isinstance(leaf, str):
        return leaf + "x"
    return 0.25 if leaf is None else None


def _ci(**changes):
    fine = {
        "provider": "github-actions", "repository": "a/b", "workflow_ref": "", "ref": "", "sha": "",
        "event": "", "runner_environment": "", "run_id": 1, "run_attempt": 1, "run_number": None,
    }  # fmt: skip
    return fine | changes
