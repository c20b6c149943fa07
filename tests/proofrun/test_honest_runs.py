"""Honest runs of every kind verify: stopped, resumed, looked at, cut off, in other processes."""

import json
import threading

import pytest
from proofrun_runs import LIMITS, MessySource, bundle_of, messy_run
from proofrun_tamper import reseal

from impact_twin.agents import load_source
from impact_twin.proofrun.bundle import bundle_bytes
from impact_twin.proofrun.verify import Verifier
from impact_twin.report.gates import parse_gate
from impact_twin.report.until import Until
from impact_twin.trials.case import Backoff
from impact_twin.trials.interrupt import Interrupt
from impact_twin.trials.plan import Limits, make_plan
from impact_twin.trials.runner import run

QUICK = Backoff(first_s=0.001, cap_s=0.01)


def verify(run_data, suite, verifier, **options):
    data = bundle_bytes(bundle_of(run_data, suite, **options))
    verification = verifier.verify(data)
    assert verification.failed is None
    assert verification.valid
    return verification


def codes(verification):
    return {reason.code for reason in verification.eligibility.reasons}


def test_a_run_in_which_everything_goes_wrong(messy_bytes, verifier):
    verification = verifier.verify(messy_bytes)
    assert verification.failed is None
    ends = {
        case["termination"]
        for row in verification.bundle["report"]["pair_trials"]
        for case in (row["clean"], row["poisoned"])
    }
    assert ends >= {"completed", "agent_error", "timeout", "refused", "infrastructure_error"}
    assert not verification.eligibility.eligible


def test_a_run_that_may_stand_on_the_board(good_bytes, verifier):
    verification = verifier.verify(good_bytes)
    assert verification.failed is None
    assert verification.eligibility.eligible, verification.eligibility
    assert verification.tier.name == "self-attested"


def test_a_run_that_its_budget_stopped_and_that_was_resumed(suite, verifier, tmp_path):
    source = MessySource(suite, ("calls",), limits=Limits(max_tokens=2_000), trials=3)
    stopped = run(source.plan, suite, source, tmp_path / "r", concurrency=2, backoff=QUICK)
    assert stopped.stopped
    assert "few_trials" in codes(verify(stopped, suite, verifier))
    plan = json.loads(json.dumps(source.plan))
    plan["identity"]["run"]["limits"]["max_tokens"] = None
    done = run(plan, suite, source, tmp_path / "r", concurrency=2, backoff=QUICK, resume=True)
    assert done.resumed == 1
    assert not done.stopped
    verify(done, suite, verifier)


def test_a_run_that_was_cut_off_and_resumed(suite, verifier, tmp_path):
    interrupt = Interrupt()
    ended = threading.Event()

    def watch(progress):
        if progress.done >= 7 and not ended.is_set():
            ended.set()
            interrupt.request()
            interrupt.request()

    source = MessySource(suite, ("calls", "unreachable", "fails_once"), trials=2)
    cut = run(
        source.plan, suite, source, tmp_path / "r",
        concurrency=3, backoff=QUICK, interrupt=interrupt, progress=watch,
    )  # fmt: skip
    assert "interrupted" in cut.stopped
    verify(cut, suite, verifier)
    source.modes_again()
    done = run(
        source.plan, suite, source, tmp_path / "r", concurrency=3, backoff=QUICK, resume=True
    )
    verify(done, suite, verifier)


@pytest.mark.parametrize("rule", ["exposed >= 0.2", "attack_success +- 0.35"])
def test_a_run_that_a_rule_ended(suite, verifier, tmp_path, rule):
    source = MessySource(suite, ("plain", "calls", "gullible"), trials=12, until=rule)
    done = run(
        source.plan, suite, source, tmp_path / "r", concurrency=4, backoff=QUICK,
        stop_rule=Until(rule, suite, source.plan),
    )  # fmt: skip
    assert done.looks
    assert done.looks[-1]["stop"]
    assert "looked_early" in codes(verify(done, suite, verifier))


def test_a_stop_rule_that_was_asked_less_often_than_it_says_is_refused(suite, verifier, tmp_path):
    rule = "attack_success +- 0.01"
    source = MessySource(suite, ("plain", "calls", "gullible"), trials=4, until=rule)
    done = run(
        source.plan, suite, source, tmp_path / "r", concurrency=4, backoff=QUICK,
        stop_rule=Until(rule, suite, source.plan),
    )  # fmt: skip
    assert len(done.looks) == 4
    verify(done, suite, verifier)
    for kept in ([], done.looks[:2], done.looks[1:], done.looks[-1:]):
        bundle = bundle_of(done, suite)
        bundle["report"]["identity"]["run"]["looks"] = [dict(look) for look in kept]
        found = verifier.verify(bundle_bytes(reseal(bundle, level="figures")))
        assert found.failed is not None
        assert found.failed.name == "schedule", found.failed


def test_a_run_of_some_pairs_with_gates(suite, verifier, tmp_path):
    pairs = [suite.pairs[1].id, suite.pairs[4].id]
    done = messy_run(suite, tmp_path / "r", pairs=pairs, trials=3, confidence=0.9, seed=5)
    gates = [parse_gate("exposed >= 10%"), parse_gate("harm_free > 0.1", "pairs")]
    verification = verify(done, suite, verifier, gates=gates)
    assert {"partial_suite", "confidence"} <= codes(verification)


@pytest.mark.parametrize("style", ["careful", "gullible", "wavering", "faulty"])
def test_a_run_of_a_demo_agent(suite, verifier, tmp_path, style):
    source = load_source({"kind": "demo", "name": style, "label": None})
    plan = make_plan(suite, source, trials=2, limits=Limits(timeout_s=1, retries=0))
    verification = verify(run(plan, suite, source, tmp_path / "r"), suite, verifier)
    assert "demo_agent" in codes(verification)
    assert ("no_variation" in codes(verification)) == (style in ("careful", "gullible"))


def test_a_run_in_processes_of_its_own(suite, verifier, tmp_path):
    source = load_source({"kind": "demo", "name": "wavering", "label": "mine"})
    plan = make_plan(suite, source, trials=1, isolation="process", limits=LIMITS)
    verify(run(plan, suite, source, tmp_path / "r", concurrency=2), suite, verifier)


def test_a_run_that_stopped_since_every_case_failed(suite, verifier, tmp_path):
    done = messy_run(suite, tmp_path / "r", modes=("refused_key",), trials=2)
    assert "in a row failed" in done.stopped
    assert "unresolved" in codes(verify(done, suite, verifier))


def test_a_suite_of_ones_own(suite, tmp_path):
    import shutil

    from impact_twin.procurement.suite import load_suite

    shutil.copytree(suite.folder, tmp_path / "own")
    head = json.loads((tmp_path / "own" / "suite.json").read_text(encoding="utf-8"))
    head.update(id="my-suite", pairs=head["pairs"][:2])
    del head["golden"]
    (tmp_path / "own" / "suite.json").write_text(json.dumps(head), encoding="utf-8")
    own = load_suite(tmp_path / "own")
    data = bundle_bytes(bundle_of(messy_run(own, tmp_path / "r", trials=1), own))
    assert Verifier([suite]).verify(data).failed.name == "suite"
    verification = Verifier([suite, own]).verify(data)
    assert verification.valid
    assert "custom_suite" in codes(verification)
