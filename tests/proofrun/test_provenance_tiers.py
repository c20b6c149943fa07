"""A tier is reached only when each of its conditions holds; each missing one is named."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

pytest.importorskip("sigstore", reason="the extra `proof` is not installed")

from provenance_forge import CLAIMS, REPOSITORY, SIGNER, Sigstore, statement

from impact_twin.canonical import canonical_bytes, digest_bytes
from impact_twin.proofrun.provenance import Expectations, check_attestation
from impact_twin.proofrun.provenance_tiers import (
    RunFacts,
    decide_tier,
    registered_plan,
    run_facts,
    tier_of,
)
from impact_twin.proofrun.tiers import CI_ATTESTED, PRE_REGISTERED, SELF_ATTESTED, self_attested

NAMED = Expectations(repository=REPOSITORY, signer_workflow=SIGNER)
CI = {
    "provider": "github-actions",
    "repository": "Acme/agent",
    "workflow_ref": "Acme/agent/.github/workflows/evaluate.yml@refs/heads/main",
    "ref": "refs/heads/main",
    "sha": "b" * 40,
    "event": "push",
    "runner_environment": "github-hosted",
    "run_id": 77,
    "run_attempt": 1,
    "run_number": 5,
}
PLAN_AT, FIRST_AT, BUNDLE_AT = 0, 60, 600
OTHER_RUN = f"{REPOSITORY}/actions/runs/78/attempts/1"
SECOND_ATTEMPT = f"{REPOSITORY}/actions/runs/77/attempts/2"


@pytest.fixture(scope="module")
def instance():
    return Sigstore()


@pytest.fixture(scope="module")
def facts(instance):
    return RunFacts(
        plan=digest_bytes(b"plan"),
        resumed=0,
        isolation="process",
        first_start=instance.seconds(FIRST_AT) + 0.5,
        ci=CI,
    )


@pytest.fixture(scope="module")
def base():
    return self_attested({"ci": None})


@pytest.fixture(scope="module")
def results(instance):
    """Results for a bundle and its plan, signed by one run at its first attempt."""

    def check(artifact, at, claims=None, expected=NAMED):
        attestation = instance.attest(statement(artifact), at=at, claims=claims)
        return check_attestation(artifact, attestation, expected, trusted_root=instance.root())

    return SimpleNamespace(
        check=check, bundle=check(b"bundle", BUNDLE_AT), plan=check(b"plan", PLAN_AT)
    )


def test_one_run_at_its_first_attempt_is_pre_registered(base, results, facts):
    decision = decide_tier(base, results.bundle, results.plan, facts)
    assert decision.tier.name == PRE_REGISTERED
    assert decision.missing == ()
    text = " ".join(decision.tier.proven)
    assert REPOSITORY in text
    assert "2026-01-02 00:00:00 UTC" in text
    assert any("run number 5" in line for line in decision.tier.claimed)
    assert any("thrown away" in line for line in decision.tier.unknowable)


def test_without_a_plan_it_is_ci_attested(base, results, facts):
    decision = decide_tier(base, results.bundle, None, facts)
    assert decision.tier.name == CI_ATTESTED
    assert "--plan-attestation" in decision.missing[0]
    named = [line for line in decision.tier.claimed if "you named none" in line]
    assert len(named) == len(results.bundle.only_claimed)


def test_without_an_attestation_it_is_self_attested(base, facts):
    decision = decide_tier(base, None, None, facts)
    assert decision.tier.name == SELF_ATTESTED
    assert set(base.proven) == set(decision.tier.proven)
    assert "--attestation" in decision.missing[0]


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (Expectations(), ("--issuer", "--repository", "--signer-workflow")),
        (Expectations(repository=REPOSITORY), ("--signer-workflow",)),
        (Expectations(signer_workflow=SIGNER), ("--repository",)),
        (Expectations(run_attempt=1), ("--repository", "--signer-workflow")),
    ],
)
def test_a_verifier_who_names_too_little_learns_nothing_about_origin(
    base, results, facts, expected, words
):
    bundle = results.check(b"bundle", BUNDLE_AT, expected=expected)
    assert bundle.verified
    decision = decide_tier(base, bundle, results.plan, facts)
    assert decision.tier.name == SELF_ATTESTED
    assert len(decision.missing) == len(words)
    assert all(word in line for word, line in zip(words, decision.missing, strict=True))


def test_a_failed_or_unsupported_attestation_leaves_it_self_attested(base, results, facts):
    for status in ("failed", "unsupported"):
        decision = decide_tier(base, replace(results.bundle, status=status), results.plan, facts)
        assert decision.tier.name == SELF_ATTESTED
        assert status in decision.missing[0]


@pytest.mark.parametrize("status", ["failed", "unsupported"])
def test_a_plan_that_does_not_verify_leaves_it_ci_attested(base, results, facts, status):
    decision = decide_tier(base, results.bundle, replace(results.plan, status=status), facts)
    assert decision.tier.name == CI_ATTESTED
    assert status in decision.missing[0]


@pytest.mark.parametrize(
    ("plan", "bundle", "words"),
    [
        ({21: OTHER_RUN}, {}, "run-id: the plan's is 78"),
        ({13: "c" * 40}, {}, "source-digest: the plan's is ccc"),
        ({10: "c" * 40}, {}, "signer-digest"),
        ({10: None}, {10: None}, "signer-digest"),
        ({21: SECOND_ATTEMPT}, {}, "the plan was signed in attempt 2"),
        ({}, {21: SECOND_ATTEMPT}, "the bundle was signed in attempt 2"),
        ({21: None}, {}, "run-id"),
        ({11: "self-hosted"}, {}, "the plan was signed on a runner that is self-hosted"),
        ({}, {11: "self-hosted"}, "the bundle was signed on a runner that is self-hosted"),
        ({}, {11: None}, "the bundle was signed on a runner that is nothing"),
        ({21: OTHER_RUN}, {21: OTHER_RUN}, "run_id 77"),
        ({13: "c" * 40}, {13: "c" * 40}, "sha bbb"),
    ],
)
def test_certificates_that_differ_are_named(base, results, facts, plan, bundle, words):
    decision = decide_tier(
        base,
        results.check(b"bundle", BUNDLE_AT, claims=bundle),
        results.check(b"plan", PLAN_AT, claims=plan),
        facts,
    )
    assert decision.tier.name == CI_ATTESTED
    assert any(words in line for line in decision.missing), decision.missing


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"plan": digest_bytes(b"other")}, "not the one that the result names"),
        ({"resumed": 1}, "resumed"),
        ({"isolation": "thread"}, "own process"),
        ({"first_start": None}, "no case was started"),
        ({"ci": None}, "does not say that it was made in a CI run"),
        ({"ci": {**CI, "repository": "acme/agent"}}, "repository"),
        ({"ci": {**CI, "run_attempt": 2}}, "run_attempt"),
        ({"ci": {**CI, "run_attempt": None}}, "run_attempt"),
        ({"ci": {}}, "run_id"),
    ],
)
def test_facts_of_the_run_that_rule_it_out_are_named(base, results, facts, change, words):
    decision = decide_tier(base, results.bundle, results.plan, replace(facts, **change))
    assert decision.tier.name == CI_ATTESTED
    assert any(words in line for line in decision.missing), decision.missing


def test_the_order_of_times_must_be_plan_then_cases_then_bundle(base, instance, results, facts):
    late = results.check(b"plan", BUNDLE_AT + 1)
    decision = decide_tier(base, results.bundle, late, facts)
    assert any("after the bundle" in line for line in decision.missing)
    early = replace(facts, first_start=instance.seconds(PLAN_AT) - 0.5)
    decision = decide_tier(base, results.bundle, results.plan, early)
    assert any("before the plan was signed" in line for line in decision.missing)
    untimed = replace(results.plan, signed_at=None)
    decision = decide_tier(base, results.bundle, untimed, facts)
    assert any("no single verified time" in line for line in decision.missing)


def test_a_hostile_start_raises_nothing(base, results, facts):
    for start in (1e300, -1e300, 0.0):
        decision = decide_tier(
            base, results.bundle, results.plan, replace(facts, first_start=start)
        )
        assert decision.tier.name in {CI_ATTESTED, PRE_REGISTERED}


def test_a_plan_checked_against_nothing_does_not_count(base, results, facts):
    plan = results.check(b"plan", PLAN_AT, expected=Expectations())
    decision = decide_tier(base, results.bundle, plan, facts)
    assert decision.tier.name == CI_ATTESTED
    assert any("repository was not compared" in line for line in decision.missing)


def test_every_line_is_printable(base, results, facts):
    hostile = {**CI, "repository": "\x1b[2J\u202e", "sha": "\u2028"}
    bundle = results.check(b"bundle", BUNDLE_AT, claims={20: "\x1b]0;x\x07"})
    decision = decide_tier(base, bundle, results.plan, replace(facts, ci=hostile))
    tier = decision.tier
    for line in (*decision.missing, *tier.proven, *tier.claimed, *tier.unknowable):
        assert line.isprintable(), line


# With a real bundle


def test_the_plan_that_a_bundle_names_is_the_one_to_attest(good):
    report = good["report"]
    assert digest_bytes(registered_plan(report)) == report["plan"]["digest"]
    assert digest_bytes(registered_plan(report)) == good["digests"]["plan"]
    changed = json.loads(json.dumps(report))
    changed["plan"]["confidence"] = 0.9
    assert registered_plan(changed) != registered_plan(report)


def test_a_real_bundle_and_its_plan_signed_by_one_run(good, instance):
    starts = [a["started"] for pt in good["report"]["pair_trials"] for a in pt["clean"]["attempts"]]
    early = int(min(starts)) - 100 - instance.seconds(0)
    good["ci"] = CI
    bundle = canonical_bytes(good)
    plan = registered_plan(good["report"])
    root = instance.root()

    def check(data, at):
        return check_attestation(
            data, instance.attest(statement(data), at=at), NAMED, trusted_root=root
        )

    decision = tier_of(good, check(bundle, early + 5000), check(plan, early))
    isolation = good["report"]["identity"]["run"]["isolation"]
    assert run_facts(good).isolation == isolation
    assert run_facts(good).first_start <= min(starts)
    if isolation == "process":
        assert decision.tier.name == PRE_REGISTERED
    else:
        assert decision.tier.name == CI_ATTESTED
        assert len(decision.missing) == 1
    other = tier_of(good, check(bundle, early + 5000), check(bundle, early))
    assert other.tier.name == CI_ATTESTED
    assert any("not the one that the result names" in line for line in other.missing)


def test_the_forged_claims_are_those_of_the_run():
    assert CLAIMS[21] == f"{REPOSITORY}/actions/runs/{CI['run_id']}/attempts/1"
