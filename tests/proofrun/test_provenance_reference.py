"""Every real attestation of the reference data gives what its origin says it must."""

import hashlib
from pathlib import Path

import pytest

pytest.importorskip("sigstore", reason="the extra `proof` is not installed")

from impact_twin.proofrun.provenance import Expectations, check_attestation
from impact_twin.proofrun.provenance_sigstore import bundled_root

SHARED = Path(__file__).parents[2].parent / "shared"
REFERENCE = SHARED / "reference" / "sigstore"
pytestmark = pytest.mark.skipif(
    not REFERENCE.is_dir(), reason="../shared is not here: the real attestations can't be checked"
)

SIGNER = (
    "github/artifact-attestations-workflows/.github/workflows/attest.yml"
    "@09b495c3f12c7881b3cc17209a327792065c1a1d"
)
RIGHT = {
    "repository": "malancas/attest-demo",
    "signer_workflow": SIGNER,
    "signer_digest": "09b495c3f12c7881b3cc17209a327792065c1a1d",
    "source_ref": "refs/heads/main",
    "source_digest": "95baf27389e83e6a5c48f42e190d48d7abcea19e",
    "issuer": "https://token.actions.githubusercontent.com",
    "runner": "github-hosted",
    "run_id": "9228858953",
    "run_attempt": 1,
    "trigger": "workflow_dispatch",
}
WRONG = [
    ("repository", "malancas/attest-demo2"),
    ("repository", "github/artifact-attestations-workflows"),
    ("repository", "Malancas/attest-demo"),
    ("signer_workflow", SIGNER.replace("attest.yml", "shared.yml")),
    ("signer_workflow", SIGNER.replace("github/", "GitHub/", 1)),
    ("signer_workflow", SIGNER.rsplit("@", 1)[0] + "@refs/heads/main"),
    ("signer_workflow", "malancas/attest-demo/.github/workflows/shared.yml@refs/heads/main"),
    ("signer_digest", "95baf27389e83e6a5c48f42e190d48d7abcea19e"),
    ("source_digest", "09b495c3f12c7881b3cc17209a327792065c1a1d"),
    ("source_ref", "refs/heads/dev"),
    ("issuer", "https://token.actions.githubusercontent.com/hammer-time"),
    ("runner", "self-hosted"),
    ("run_id", "9228858954"),
    ("run_attempt", 2),
    ("trigger", "push"),
]
# Folder, artifact, attestation, status, the check that decides.
CASES = [
    ("custom-issuer", "custom-issuer-artifact", "custom-issuer.sigstore.json", "verified", ""),
    (
        "private-repo-tsa",
        "github_provenance_demo-0.0.12-py3-none-any.whl",
        "github_provenance_demo-0.0.12-py3-none-any-bundle.jsonl",
        "unsupported",
        "format",
    ),
    (
        "npm-intoto002",
        "sigstore-js-2.1.0.tgz",
        "sigstore-js-2.1.0-bundle.json",
        "unsupported",
        "format",
    ),
    # Genuine, but it states that a file was published, not how it was made.
    (
        "pypi-pep740",
        "pypi_attestation_models-0.0.4a2.tar.gz",
        "pypi_attestation_models-0.0.4a2.tar.gz.sigstore",
        "failed",
        "predicate-type",
    ),
    *(
        (
            "pypi-pep740",
            "pypi_attestations-0.0.19.tar.gz",
            f"pypi_attestations-0.0.19.tar.gz.{kind}",
            "unsupported",
            "format",
        )
        for kind in ("provenance", "publish.attestation", "slsa.attestation")
    ),
    # Genuine, but it states nothing at all.
    (
        "message-signature",
        "bundle_v3_github.whl",
        "bundle_v3_github.whl.sigstore",
        "unsupported",
        "payload-type",
    ),
]


def read(*parts):
    return REFERENCE.joinpath(*parts).read_bytes()


def deciding(result):
    bad = [check.name for check in result.checks if check.status in {"failed", "unsupported"}]
    return bad[0] if bad else ""


@pytest.fixture(scope="module")
def reusable():
    folder = "reusable-workflow"
    return (
        read(folder, "reusable-workflow-artifact"),
        read(folder, "reusable-workflow-attestation.sigstore.json"),
    )


def test_the_reusable_workflow_verifies_though_its_certificate_has_expired(reusable):
    result = check_attestation(*reusable, Expectations(**RIGHT))
    assert result.status == "verified"
    assert result.identity_checked
    assert result.only_claimed == ()
    assert result.signed_at == 1716578064
    assert result.claims.caller_workflow.endswith(
        "attest-demo/.github/workflows/shared.yml@refs/heads/main"
    )


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_every_wrong_expectation_fails(reusable, field, value):
    result = check_attestation(*reusable, Expectations(**{**RIGHT, field: value}))
    assert result.status == "failed"
    assert [c.name for c in result.checks if c.status == "failed"] == [field.replace("_", "-")]


def test_a_flipped_bit_is_caught_by_the_subject(reusable):
    artifact, attestation = reusable
    changed = artifact[:-1] + bytes([artifact[-1] ^ 1])
    assert deciding(check_attestation(changed, attestation)) == "subject"


def test_the_older_root_knows_it_too(reusable):
    root = read("roots", "trusted_root.production.2024-10.json")
    assert check_attestation(*reusable, trusted_root=root).verified


@pytest.mark.parametrize(("folder", "artifact", "attestation", "status", "check"), CASES)
def test_a_case_gives_what_it_must(folder, artifact, attestation, status, check):
    result = check_attestation(read(folder, artifact), read(folder, attestation))
    assert (result.status, deciding(result)) == (status, check)


@pytest.mark.parametrize("kind", ["message-signature"])
def test_a_message_signature_over_other_bytes_fails(kind):
    result = check_attestation(b"other", read(kind, "bundle_v3_github.whl.sigstore"))
    assert (result.status, deciding(result)) == ("failed", "signature")


def test_the_custom_issuer_is_the_wrong_one():
    folder = "custom-issuer"
    result = check_attestation(
        read(folder, "custom-issuer-artifact"),
        read(folder, "custom-issuer.sigstore.json"),
        Expectations(repository="too-legit/attest"),
    )
    assert deciding(result) == "issuer"


def conformance():
    folder = REFERENCE / "conformance"
    return (
        sorted(path.name for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    )


@pytest.mark.parametrize("name", conformance())
def test_a_conformance_case_fails_exactly_when_its_name_says_so(name):
    root = REFERENCE / "conformance" / name / "trusted_root.json"
    result = check_attestation(
        read("conformance", "a.txt"),
        read("conformance", name, "bundle.sigstore.json"),
        trusted_root=root.read_bytes() if root.exists() else None,
    )
    assert result.status == ("failed" if name.endswith("_fail") else "verified")
    if name.endswith("_fail"):
        assert deciding(result) == "signature"
        assert result.claims is None


def test_no_conformance_case_went_missing():
    names = conformance()
    assert len(names) == 11
    assert sum(name.endswith("_fail") for name in names) == 9


def test_the_root_of_this_release_is_the_reference_one():
    reference = read("roots", "trusted_root.production.sigstore-4.5.1.json")
    assert hashlib.sha256(bundled_root()).digest() == hashlib.sha256(reference).digest()
