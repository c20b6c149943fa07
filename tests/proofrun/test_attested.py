"""Rung 7: a bundle with attestations, signed by a small Sigstore of our own."""

import pytest

pytest.importorskip("sigstore", reason="the extra `proof` is not installed")

from provenance_forge import REPOSITORY, SIGNER, Sigstore, statement

from impact_twin.proofrun.attested import judge
from impact_twin.proofrun.outcome_text import tier_lines, verification_json, verification_lines
from impact_twin.proofrun.provenance import NOTHING_EXPECTED, Expectations
from impact_twin.proofrun.provenance_tiers import registered_plan
from impact_twin.proofrun.tiers import CI_ATTESTED, SELF_ATTESTED

EXPECTED = Expectations(
    repository=REPOSITORY.removeprefix("https://github.com/"),
    signer_workflow=SIGNER.removeprefix("https://github.com/"),
)


@pytest.fixture(scope="module")
def sigstore():
    return Sigstore()


@pytest.fixture
def attest(sigstore, good_bytes, verifier):
    """Judge the good bundle, or other bytes, with an attestation of the bytes given."""

    def call(signed=good_bytes, data=good_bytes, expected=EXPECTED, **options):
        verification = verifier.verify(data)
        found = judge(
            data,
            verification,
            sigstore.attest(statement(signed)),
            expected,
            trusted_root=sigstore.root(),
            **options,
        )
        return verification, found

    return call


def test_an_attestation_as_expected_raises_the_tier(attest):
    verification, found = attest()
    assert found.held
    assert found.tier.name == CI_ATTESTED
    assert found.missing
    (check,) = found.checks
    assert (check.rung, check.status) == (7, "held")
    assert "repository" in check.message
    lines = list(verification_lines("x.json", verification, found))
    assert lines[0] == "x.json: verified"
    assert all(len(line) <= 80 for line in lines)
    assert any("7 provenance    held" in line for line in lines)
    assert any(line.startswith("What CI-attested bytes means") for line in tier_lines([found.tier]))
    result = verification_json("x.json", verification, found)
    assert result["verified"]
    assert result["tier"]["name"] == CI_ATTESTED
    assert result["attestation"]["identity_checked"]


def test_without_expectations_nothing_is_checked_against_it(attest):
    verification, found = attest(expected=NOTHING_EXPECTED)
    assert found.held
    assert found.tier.name == SELF_ATTESTED
    (check,) = found.checks
    assert "compared with nothing" in check.message
    text = " ".join(" ".join(verification_lines("x", verification, found)).split())
    assert "nothing was checked against the certificate" in text


def test_an_attestation_of_other_bytes_fails(attest, messy_bytes):
    verification, found = attest(signed=messy_bytes)
    assert verification.valid
    assert not found.held
    assert found.tier.name == SELF_ATTESTED
    (check,) = found.checks
    assert check.status == "failed"
    assert "does not hold: subject" in check.message
    assert next(verification_lines("x.json", verification, found)) == "x.json: NOT VERIFIED"
    assert not verification_json("x.json", verification, found)["verified"]


def test_another_repository_than_expected_fails(attest):
    _, found = attest(expected=Expectations(repository="acme/agent"))
    assert not found.held
    assert found.tier.name == SELF_ATTESTED


def test_a_genuine_attestation_saves_no_bad_bundle(attest, good_bytes):
    bad = good_bytes + b"\n"
    verification, found = attest(signed=bad, data=bad)
    assert not verification.valid
    assert found.held
    assert found.tier is None
    assert next(verification_lines("x.json", verification, found)) == "x.json: NOT VERIFIED"


def test_a_plan_attestation_is_checked_as_well(attest, sigstore, good, good_bytes):
    plan = registered_plan(good["report"])
    _, found = attest(plan_attestation=sigstore.attest(statement(plan, name="plan.json")))
    assert found.held
    assert [check.name for check in found.checks] == ["provenance", "provenance"]
    _, other = attest(plan_attestation=sigstore.attest(statement(good_bytes)))
    assert not other.held
    assert other.plan.status == "failed"
