"""A genuine attestation verifies; every wrong expectation, changed byte or odd kind does not."""

import base64
import json
import random
import socket
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from impact_twin.errors import InputError

pytest.importorskip("sigstore", reason="the extra `proof` is not installed")

from provenance_forge import (
    CLAIMS,
    PREDICATE,
    REPOSITORY,
    SIGNER,
    STATEMENT,
    Sigstore,
    statement,
    utf8_string,
)

from impact_twin.proofrun.provenance import (
    FIXED_CHECKS,
    GITHUB_ISSUER,
    MAX_BYTES,
    AttestationResult,
    Expectations,
    check_attestation,
)
from impact_twin.proofrun.provenance_words import CLAIM_OF

DATA = Path(__file__).parent / "data" / "provenance"
BEACON = "sigstore-conformance/extremely-dangerous-public-oidc-beacon"
RIGHT = {
    "repository": BEACON,
    "signer_workflow": (
        f"{BEACON}/.github/workflows/extremely-dangerous-oidc-beacon.yml@refs/heads/main"
    ),
    "signer_digest": "82a3bfe6dd50fe9c71d6315eae66da15307856cf",
    "source_ref": "refs/heads/main",
    "source_digest": "82a3bfe6dd50fe9c71d6315eae66da15307856cf",
    "issuer": GITHUB_ISSUER,
    "runner": "github-hosted",
    "run_id": "12359147651",
    "run_attempt": 1,
    "trigger": "workflow_dispatch",
}
WRONG = [
    ("repository", "sigstore-conformance/another"),
    ("repository", f"other/{BEACON.split('/')[1]}"),
    ("repository", BEACON.replace("sigstore", "Sigstore", 1)),
    ("repository", BEACON.upper()),
    ("repository", f"{BEACON}2"),
    ("repository", BEACON[:-1]),
    ("repository", f"https://github.example/{BEACON}"),
    ("signer_workflow", RIGHT["signer_workflow"].replace("oidc-beacon.yml", "other.yml")),
    ("signer_workflow", RIGHT["signer_workflow"].replace("refs/heads/main", "refs/heads/dev")),
    ("signer_workflow", RIGHT["signer_workflow"].replace("refs/heads/main", "main")),
    ("signer_workflow", RIGHT["signer_workflow"].replace("refs/heads/main", "refs/heads/main2")),
    ("signer_workflow", RIGHT["signer_workflow"].replace("sigstore", "Sigstore", 1)),
    ("signer_workflow", RIGHT["signer_workflow"].replace(".github/", ".github/x/../")),
    ("signer_digest", "82a3bfe6dd50fe9c71d6315eae66da15307856ce"),
    ("source_ref", "refs/heads/Main"),
    ("source_ref", "refs/tags/main"),
    ("source_digest", "0" * 40),
    ("source_digest", "0" * 64),
    ("issuer", f"{GITHUB_ISSUER}/"),
    ("issuer", "https://token.actions.example"),
    ("issuer", GITHUB_ISSUER.upper()),
    ("runner", "self-hosted"),
    ("run_id", "12359147652"),
    ("run_attempt", 2),
    ("run_attempt", 11),
    ("trigger", "push"),
    ("trigger", "Workflow_dispatch"),
]


def option(field):
    return field.replace("_", "-")


def statuses(result):
    return {check.name: check.status for check in result.checks}


def failed(result):
    return [check.name for check in result.checks if check.status == "failed"]


@pytest.fixture(scope="module")
def artifact():
    return (DATA / "a.txt").read_bytes()


@pytest.fixture(scope="module")
def happy():
    return (DATA / "happy.sigstore.json").read_bytes()


@pytest.fixture(scope="module")
def instance():
    return Sigstore()


def with_changes(data, change):
    document = json.loads(data)
    change(document)
    return json.dumps(document).encode()


def entry_of(document):
    return document["verificationMaterial"]["tlogEntries"][0]


# Genuine ones


def test_without_expectations_the_claims_are_told_and_nothing_is_checked(artifact, happy):
    result = check_attestation(artifact, happy)
    assert result.status == "verified"
    assert [check.name for check in result.checks] == list(FIXED_CHECKS)
    assert result.checked == ()
    assert result.only_claimed == tuple(CLAIM_OF)
    assert not result.identity_checked
    assert result.claims.repository == f"https://github.com/{BEACON}"
    assert result.claims.run_id == RIGHT["run_id"]
    assert result.claims.run_attempt == 1
    assert result.claims.visibility == "public"
    assert result.signed_at == 1734374576
    assert result.subject == "a.txt"
    assert any("nothing was checked against the certificate" in line for line in result.lines())


def test_right_expectations_hold_and_are_named_as_checked(artifact, happy):
    result = check_attestation(artifact, happy, Expectations(**RIGHT))
    assert result.status == "verified"
    assert result.problem == ""
    assert set(result.checked) == set(CLAIM_OF)
    assert result.only_claimed == ()
    assert result.identity_checked
    json.dumps(result.to_json(), allow_nan=False)


@pytest.mark.parametrize(("field", "value"), WRONG)
def test_one_wrong_expectation_fails_and_is_the_only_one_that_does(artifact, happy, field, value):
    result = check_attestation(artifact, happy, Expectations(**{**RIGHT, field: value}))
    assert result.status == "failed"
    assert failed(result) == [option(field)]
    assert option(field) not in result.checked
    assert option(field) not in result.only_claimed
    assert not result.identity_checked


def test_every_field_of_the_expectations_has_a_wrong_value_above():
    assert {field for field, _ in WRONG} == {field.name for field in fields(Expectations)}


def test_a_difference_in_case_is_named(artifact, happy):
    expected = Expectations(repository=BEACON.replace("sigstore", "Sigstore", 1))
    result = check_attestation(artifact, happy, expected)
    assert "upper and lower case count" in result.problem


def test_addresses_may_be_given_in_full(artifact, happy):
    full = {name: f"https://github.com/{RIGHT[name]}" for name in ("repository", "signer_workflow")}
    assert check_attestation(artifact, happy, Expectations(**full)).identity_checked


def test_the_issuer_is_githubs_unless_named():
    assert Expectations().asked() == ()
    assert dict(Expectations(run_attempt=1).asked()) == {
        "issuer": GITHUB_ISSUER,
        "run-attempt": 1,
    }


def test_a_custom_issuer_fails_unless_it_is_the_one_expected():
    artifact = (DATA / "custom-issuer.txt").read_bytes()
    attestation = (DATA / "custom-issuer.sigstore.json").read_bytes()
    plain = check_attestation(artifact, attestation, Expectations(repository="too-legit/attest"))
    assert failed(plain) == ["issuer"]
    named = Expectations(repository="too-legit/attest", issuer=f"{GITHUB_ISSUER}/hammer-time")
    assert check_attestation(artifact, attestation, named).status == "verified"


def test_the_trusted_root_is_the_verifiers_choice(artifact):
    attestation = (DATA / "rekor2.sigstore.json").read_bytes()
    root = (DATA / "rekor2.trusted_root.json").read_bytes()
    result = check_attestation(artifact, attestation, trusted_root=root)
    assert result.status == "verified"
    # The time stands in the one signed timestamp; a log of version 2 gives none.
    assert result.signed_at == 1778700213
    assert failed(check_attestation(artifact, attestation)) == ["signature"]


def test_a_root_that_others_made_does_not_vouch_for_the_public_instance(artifact, happy, instance):
    result = check_attestation(artifact, happy, trusted_root=instance.root())
    assert failed(result) == ["signature"]
    ours = instance.attest(statement(artifact))
    refused = check_attestation(artifact, ours)
    assert failed(refused) == ["signature"]
    assert "--trusted-root" in refused.problem


def test_no_connection_is_opened(artifact, happy, monkeypatch):
    def refuse(*_):
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert check_attestation(artifact, happy).status == "verified"


def test_nothing_is_written_to_standard_error(artifact, happy, capfd):
    check_attestation(artifact, happy)
    assert capfd.readouterr() == ("", "")


# Changed bytes


def test_a_flipped_bit_of_the_artifact_is_caught_by_the_subject_alone(artifact, happy):
    for at in (0, len(artifact) // 2, len(artifact) - 1):
        changed = bytearray(artifact)
        changed[at] ^= 1
        result = check_attestation(bytes(changed), happy, Expectations(**RIGHT))
        assert result.status == "failed"
        assert failed(result) == ["subject"]
        assert result.checked == ()


@pytest.mark.parametrize("name", ["invalid-signature", "mismatched-envelope"])
def test_a_wrong_signature_fails_and_claims_nothing(artifact, name):
    result = check_attestation(artifact, (DATA / f"{name}.sigstore.json").read_bytes())
    assert failed(result) == ["signature"]
    assert result.claims is None
    assert result.signed_at is None
    assert statuses(result)["subject"] == "not made"


def test_hostile_bytes_in_every_part_raise_nothing_and_never_verify(artifact, happy):
    """Errors of other packages and panics end as a failed check; no changed byte goes unnoticed."""
    random.seed(4)
    parts = [
        lambda d: (d["verificationMaterial"]["certificate"], "rawBytes"),
        lambda d: (entry_of(d), "canonicalizedBody"),
        lambda d: (entry_of(d)["inclusionPromise"], "signedEntryTimestamp"),
        lambda d: (entry_of(d)["inclusionProof"], "rootHash"),
        lambda d: (d["dsseEnvelope"], "payload"),
        lambda d: (d["dsseEnvelope"]["signatures"][0], "sig"),
    ]
    for part in parts:
        for _ in range(25):
            document = json.loads(happy)
            holder, name = part(document)
            data = bytearray(base64.b64decode(holder[name]))
            data[random.randrange(len(data))] ^= 1 << random.randrange(8)
            holder[name] = base64.b64encode(data).decode()
            result = check_attestation(artifact, json.dumps(document).encode())
            assert result.status == "failed", (name, result.lines())


@pytest.mark.parametrize(
    "value", ["", "A", "!!!", "\x00", "é", "AAAA", "MA==", "9" * 5000, None, 0, [], {}, True]
)
def test_values_of_the_wrong_kind_raise_nothing(artifact, happy, value):
    for change in (
        lambda d: d["verificationMaterial"].__setitem__("certificate", {"rawBytes": value}),
        lambda d: entry_of(d).__setitem__("integratedTime", value),
        lambda d: entry_of(d).__setitem__("logIndex", value),
        lambda d: entry_of(d)["inclusionProof"].__setitem__("treeSize", value),
        lambda d: entry_of(d)["inclusionProof"].__setitem__("checkpoint", {"envelope": value}),
        lambda d: entry_of(d).__setitem__("inclusionProof", value),
        lambda d: entry_of(d).__setitem__("kindVersion", value),
        lambda d: d["verificationMaterial"].__setitem__("tlogEntries", value),
        lambda d: d.__setitem__("verificationMaterial", value),
        lambda d: d.__setitem__("mediaType", value),
        lambda d: d.__setitem__("dsseEnvelope", value),
        lambda d: d["dsseEnvelope"].__setitem__("signatures", value),
        lambda d: d["dsseEnvelope"].__setitem__("payload", value),
    ):
        result = check_attestation(artifact, with_changes(happy, change))
        assert result.status in {"failed", "unsupported"}
        assert all(line.isprintable() for line in result.lines())


def test_a_later_time_than_the_log_promised_fails(artifact, happy):
    for moved in ("99999999999999", "-1", "1734374577"):
        changed = with_changes(
            happy, lambda d, moved=moved: entry_of(d).__setitem__("integratedTime", moved)
        )
        assert failed(check_attestation(artifact, changed)) == ["signature"]


# The reader


def test_a_second_envelope_under_the_same_key_is_refused_though_the_library_takes_it(
    artifact, happy
):
    from sigstore.models import Bundle

    first = json.dumps(json.loads(happy)["dsseEnvelope"])
    other = first.replace('"payloadType": "application/vnd.in-toto+json"', '"payloadType": "x"')
    doubled = happy.decode().replace('"dsseEnvelope"', f'"dsseEnvelope": {other}, "dsseEnvelope"')
    Bundle.from_json(doubled)
    result = check_attestation(artifact, doubled.encode())
    assert failed(result) == ["read"]
    assert "twice" in result.problem


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{",
        b"\xff\xfe{}",
        b"\xef\xbb\xbf{}",
        b'{"mediaType": NaN}',
        b'{"a": 1e999}',
        b'{"a":' * 40 + b"1" + b"}" * 40,
        b"[" * 100_000,
        b'{"a": "\\ud800"}',
        b" " * (MAX_BYTES + 1),
    ],
)
def test_what_is_no_json_object_fails_at_reading(artifact, data):
    result = check_attestation(artifact, data)
    assert result.status == "failed"
    assert failed(result) == ["read"]
    assert {check.status for check in result.checks[1:]} == {"not made"}


@pytest.mark.parametrize("document", [{}, {"mediaType": "text/plain"}, {"mediaType": "a\x1b[31m"}])
def test_json_that_is_no_bundle_fails(artifact, document):
    result = check_attestation(artifact, json.dumps(document).encode())
    assert failed(result) == ["format"]
    assert all(line.isprintable() for line in result.lines())


# Kinds that can't be judged


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.__setitem__("mediaType", "application/vnd.dev.sigstore.bundle.v0.9+json"),
        lambda d: d["verificationMaterial"].pop("tlogEntries"),
        lambda d: d["verificationMaterial"].__setitem__("tlogEntries", []),
        lambda d: d["verificationMaterial"]["tlogEntries"].append(entry_of(d)),
        lambda d: entry_of(d).__setitem__("kindVersion", {"kind": "intoto", "version": "0.0.2"}),
        lambda d: d["verificationMaterial"].__setitem__("publicKey", {"hint": "x"}),
        lambda d: (
            d.__setitem__("mediaType", "application/vnd.dev.sigstore.bundle+json;version=0.1"),
            entry_of(d).pop("inclusionProof"),
        ),
    ],
)
def test_a_kind_that_the_library_cant_judge_is_unsupported_not_failed(artifact, happy, change):
    result = check_attestation(artifact, with_changes(happy, change), Expectations(**RIGHT))
    assert result.status == "unsupported"
    assert failed(result) == []
    assert not result.verified
    assert result.checked == ()
    assert result.claims is None
    assert result.problem.startswith("format: ")


@pytest.mark.parametrize(
    "document",
    [
        {"version": 1, "verification_material": {}, "envelope": {}},
        {"version": 1, "attestation_bundles": []},
        {"attestations": []},
    ],
)
def test_other_containers_are_unsupported(artifact, document):
    result = check_attestation(artifact, json.dumps(document).encode())
    assert result.status == "unsupported"


# What our own instance signs: genuine signatures over other statements


@pytest.mark.parametrize(
    ("payload", "check"),
    [
        (b"", "statement"),
        (b"not json", "statement"),
        (b"[]", "statement"),
        (b'{"_type": "x", "_type": "y"}', "statement"),
        (statement(b"x", kind="https://in-toto.io/Statement/v0.1"), "statement"),
        (statement(b"x", kind=f"{STATEMENT}/"), "statement"),
        (statement(b"x", predicate_type="https://slsa.dev/provenance/v0.2"), "predicate-type"),
        (
            statement(b"x", predicate_type="https://docs.pypi.org/attestations/publish/v1"),
            "predicate-type",
        ),
        (statement(b"x", predicate_type=PREDICATE.upper()), "predicate-type"),
        (statement(b"x", predicate_type=None), "predicate-type"),
        (statement(b"y"), "subject"),
        (statement(b"x", subject=[]), "subject"),
        (statement(b"x", subject={}), "subject"),
        (statement(b"x", subject=[None, 1, {"digest": 1}, {"digest": {"sha256": 1}}]), "subject"),
        (statement(b"x", subject=[{"name": "x", "digest": {"sha512": "0"}}]), "subject"),
    ],
)
def test_a_genuine_signature_over_another_statement_fails(instance, payload, check):
    result = check_attestation(b"x", instance.attest(payload), trusted_root=instance.root())
    assert result.status == "failed"
    assert failed(result) == [check]
    assert result.claims.repository == REPOSITORY


def test_a_genuine_signature_over_another_kind_of_payload_fails(instance):
    attestation = instance.attest(statement(b"x"), payload_type="application/json")
    result = check_attestation(b"x", attestation, trusted_root=instance.root())
    assert failed(result) == ["payload-type"]


def test_a_digest_in_upper_case_is_not_the_files(instance):
    text = json.loads(statement(b"x"))
    text["subject"][0]["digest"]["sha256"] = text["subject"][0]["digest"]["sha256"].upper()
    attestation = instance.attest(json.dumps(text).encode())
    assert failed(check_attestation(b"x", attestation, trusted_root=instance.root())) == ["subject"]


def test_one_of_several_subjects_is_enough(instance):
    one, other = json.loads(statement(b"x")), json.loads(statement(b"y", name="plan.json"))
    both = statement(b"x", subject=one["subject"] + other["subject"])
    result = check_attestation(b"y", instance.attest(both), trusted_root=instance.root())
    assert result.status == "verified"
    assert result.subject == "plan.json"


def test_what_the_predicate_says_of_its_origin_is_never_used(instance):
    lie = {"buildDefinition": {"externalParameters": {"workflow": {"repository": "victim/repo"}}}}
    attestation = instance.attest(statement(b"x", predicate=lie))
    result = check_attestation(
        b"x", attestation, Expectations(repository="victim/repo"), trusted_root=instance.root()
    )
    assert failed(result) == ["repository"]


# Certificates


@pytest.mark.parametrize("number", [n for n in CLAIMS if n not in {9, 15, 17, 18, 22}])
def test_a_claim_that_the_certificate_lacks_equals_no_expectation(instance, number):
    attestation = instance.attest(statement(b"x"), claims={number: None})
    expected = {
        8: Expectations(issuer=GITHUB_ISSUER),
        10: Expectations(signer_digest="a" * 40),
        11: Expectations(runner="github-hosted"),
        12: Expectations(repository=REPOSITORY),
        13: Expectations(source_digest="b" * 40),
        14: Expectations(source_ref="refs/heads/main"),
        20: Expectations(trigger="push"),
        21: Expectations(run_attempt=1),
    }[number]
    result = check_attestation(b"x", attestation, expected, trusted_root=instance.root())
    assert result.status == "failed"
    assert "nothing" in result.problem
    intact = instance.attest(statement(b"x"))
    assert check_attestation(b"x", intact, expected, trusted_root=instance.root()).verified


@pytest.mark.parametrize(
    "der",
    [
        b"",
        b"\x0c",
        b"\x0c\x05abc",
        b"\x13\x01a",
        b"\x0c\x02\xff\xfe",
        b"\x0c\x84\x00\x00\x00\x01a",
        b"\x0c\x01ab",
        b"\x0c\x80a",
    ],
)
def test_a_claim_that_is_no_text_fails_the_certificate(instance, der):
    attestation = instance.attest(statement(b"x"), raw={12: der})
    result = check_attestation(b"x", attestation, trusted_root=instance.root())
    assert failed(result) == ["certificate"]
    assert result.claims is None


@pytest.mark.parametrize("length", [1, 127, 128, 255, 256, 5000])
def test_texts_of_any_length_are_read(instance, length):
    attestation = instance.attest(statement(b"x"), raw={20: utf8_string("t" * length)})
    result = check_attestation(b"x", attestation, trusted_root=instance.root())
    assert result.claims.trigger == "t" * length
    assert max(map(len, result.lines())) < 1000


def test_a_certificate_for_another_signer_than_it_names_fails(instance):
    attestation = instance.attest(statement(b"x"), identity="https://github.com/other/w.yml@main")
    result = check_attestation(
        b"x", attestation, Expectations(signer_workflow=SIGNER), trusted_root=instance.root()
    )
    assert failed(result) == ["certificate"]


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/acme/agent/actions/runs/77/attempts/1",
        f"{REPOSITORY}/actions/runs/77/attempts/1/",
        f"{REPOSITORY}/actions/runs/77",
        f"{REPOSITORY}/actions/runs/077/attempts/1",
        f"{REPOSITORY}/actions/runs/77/attempts/0",
        f"{REPOSITORY}/actions/runs/77/attempts/1\n",
        f"{REPOSITORY}/actions/runs/٧٧/attempts/1",
    ],
)
def test_a_run_address_of_another_form_gives_no_run(instance, url):
    attestation = instance.attest(statement(b"x"), claims={21: url})
    result = check_attestation(
        b"x", attestation, Expectations(run_id="77"), trusted_root=instance.root()
    )
    assert failed(result) == ["run-id"]


def test_hostile_texts_of_a_certificate_are_escaped(instance):
    attestation = instance.attest(
        statement(b"x", name="\x1b]8;;evil\x07\u202e"), claims={20: "\x1b[2J::error::\u2028x"}
    )
    result = check_attestation(b"x", attestation, trusted_root=instance.root())
    assert result.verified
    assert all(line.isprintable() for line in result.lines())


# The verifier's own input


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("repository", "agent"),
        ("repository", "a/b/c"),
        ("repository", "a/b@main"),
        ("repository", ""),
        ("repository", "http://github.com/a/b"),
        ("signer_workflow", "a/b/.github/workflows/x.yml"),
        ("signer_workflow", "x.yml@main"),
        ("signer_workflow", ""),
        ("signer_digest", "abc"),
        ("source_digest", "A" * 40),
        ("source_digest", "sha1:" + "a" * 40),
        ("source_ref", "main"),
        ("issuer", " "),
        ("runner", "hosted"),
        ("run_id", "0"),
        ("run_id", "x"),
        ("run_attempt", 0),
        ("trigger", ""),
    ],
)
def test_an_expectation_that_fits_no_certificate_is_an_input_error(field, value):
    with pytest.raises(InputError) as caught:
        Expectations(**{field: value})
    assert caught.value.where == f"--{option(field)}"


@pytest.mark.parametrize("root", [b"", b"{}", b"[]", b"x", b'{"mediaType": "x"}'])
def test_a_root_that_cant_be_read_is_an_input_error(artifact, happy, root):
    with pytest.raises(InputError) as caught:
        check_attestation(artifact, happy, trusted_root=root)
    assert caught.value.where == "--trusted-root"


def test_without_the_extra_the_mend_is_named(artifact, happy, monkeypatch):
    for name in list(sys.modules):
        if name.split(".")[0] in {"sigstore", "sigstore_models"}:
            monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError) as caught:
        check_attestation(artifact, happy)
    assert "impact-twin[proof]" in caught.value.line()


def test_a_result_can_only_be_verified_when_every_check_held():
    assert AttestationResult("failed", ()).identity_checked is False
    assert AttestationResult("unsupported", (), checked=tuple(CLAIM_OF)).identity_checked is False
