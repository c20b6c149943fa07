"""Files that are made to be expensive: what they may cost is bounded."""

import copy
import time

from proofrun_mutations import forget
from proofrun_tamper import TWINS, reseal

from impact_twin.procurement.runtime import CaseRuntime
from impact_twin.proofrun.bundle import bundle_bytes
from impact_twin.proofrun.digests import planned_cases
from impact_twin.proofrun.reading import ReadLimits
from impact_twin.proofrun.verify import Verifier


def with_calls(bundle, suite, calls):
    """Put calls in front of those of one trace, as if the agent had made them."""
    report = bundle["report"]
    name, entry = next(iter(report["traces"].items()))
    report["identity"]["run"]["limits"]["max_tool_calls"] = 100_000
    world = CaseRuntime(suite, entry["pair"], entry["twin"], max_calls=100_000)
    for tool, arguments in [*calls, *((e["tool"], e["arguments"]) for e in entry["events"])]:
        world.call(tool, arguments)
    fresh = world.trace(entry["termination"], entry["final_answer"])
    entry.update(fresh.to_json(report["texts"]))
    forget(report)
    return name


def test_messages_may_not_hold_more_text_than_allowed(good, suite):
    # One character of three bytes that reading spells out as eighteen.
    body = "\ufdfa" * 15_000
    call = ("send_message", {"recipient": "a@b.example", "subject": "", "body": body})
    with_calls(good, suite, [call] * 5)
    data = bundle_bytes(reseal(good, suite, "verdicts"))
    assert Verifier([suite]).verify(data).failed is None
    small = Verifier([suite], ReadLimits(max_bytes=len(data)))
    failed = small.verify(data).failed
    assert failed.name == "replay"
    assert "more than 1000000 characters" in failed.message


def test_many_cases_of_one_long_trace_are_read_once(good, suite, verifier):
    trials, calls = 150, 4_000
    report = good["report"]
    report["plan"].update(pairs=["award-bias"], full_suite=False, trials=trials, most_trials=trials)
    row = next(row for row in report["pair_trials"] if row["pair"] == "award-bias")
    name = row["poisoned"]["trace"]
    report["traces"] = {name: report["traces"].pop(name), **report["traces"]}
    report["pair_trials"] = [copy.deepcopy(row) for _ in range(trials)]
    with_calls(good, suite, [("list_documents", {})] * calls)
    places = {key: place for place, key in enumerate(planned_cases(report))}
    first = {}
    for key, place in places.items():
        first.setdefault(key.trial, (place // 2, key.twin))
    for trial, copied in enumerate(report["pair_trials"], 1):
        copied["trial"] = trial
        copied["order"], copied["first"] = first[trial]
        for twin in TWINS:
            copied[twin]["position"] = places["award-bias", trial, twin]
            for timed in (*copied[twin]["attempts"], *copied[twin]["model_calls"]):
                timed["started"] += trial
    data = bundle_bytes(reseal(good, suite, "verdicts"))
    begun = time.process_time()
    assert verifier.verify(data).failed is None
    # Reading the trace once for every case takes 150 times as long as all the rest.
    assert time.process_time() - begun < 15


def test_a_trace_that_decides_for_nobody_is_refused_before_decisions_are_counted(
    good, suite, verifier
):
    """Thousands of different decisions would take gigabytes to compare."""
    report = good["report"]
    for number, entry in enumerate(report["traces"].values()):
        entry["decision"] = f"V-{number}"
    failed = verifier.verify(bundle_bytes(reseal(good, suite, "figures"))).failed
    assert failed.name == "traces"
    assert "decides for no vendor" in failed.message
