"""The ladder: its order, its result, and that nothing makes it stumble."""

import json

import pytest
from proofrun_tamper import put, reseal

from impact_twin.canonical import digest_bytes
from impact_twin.proofrun import verify as ladder
from impact_twin.proofrun.bundle import bundle_bytes
from impact_twin.proofrun.checks import CHECKS, RUNGS, Check


def test_checks_are_made_in_the_order_of_the_rungs(messy_bytes, verifier):
    verification = verifier.verify(messy_bytes)
    assert [check.name for check in verification.checks] == list(CHECKS)[:-1]
    assert [check.rung for check in verification.checks] == sorted(list(CHECKS.values())[:-1])
    assert set(CHECKS.values()) == set(RUNGS)
    assert {check.status for check in verification.checks} == {"held"}
    assert all(check.message for check in verification.checks)


def test_the_identity_of_a_bundle_is_the_digest_of_its_bytes(messy_bytes, verifier):
    verification = verifier.verify(messy_bytes)
    assert verification.digest == digest_bytes(messy_bytes)
    assert verification.size == len(messy_bytes)
    assert bundle_bytes(verification.bundle) == messy_bytes


def test_nothing_is_checked_after_the_first_failure(messy, verifier, suite):
    messy["report"]["pair_trials"][0]["outcome"] = "swayed"
    reseal(messy, suite, "figures")
    verification = verifier.verify(bundle_bytes(messy))
    statuses = [check.status for check in verification.checks]
    place = [check.name for check in verification.checks].index("outcomes")
    assert statuses == ["held"] * place + ["failed"] + ["not made"] * (len(statuses) - place - 1)
    assert (verification.bundle, verification.eligibility, verification.tier) == (None, None, None)
    assert verification.failed == verification.checks[place]


@pytest.mark.parametrize(
    ("path", "value", "name", "words"),
    [
        (("kind",), "impact-twin/report", "schema", "impact-twin submit makes one"),
        (("kind",), "other", "schema", "is no bundle"),
        (("schema_version",), 7, "schema", "has schema_version 7; this impact-twin reads up to 1"),
        (("report", "surprise"), 1, "schema", "surprise"),
        (("digests", "report"), "sha256:" + "0" * 64, "digests", "digests.report says"),
        (("report", "plan", "digest"), "sha256:" + "0" * 64, "digests", "digests.report says"),
    ],
)
def test_a_failure_says_what_was_wrong(messy, verifier, path, value, name, words):
    put(messy, path, value)
    check = verifier.verify(bundle_bytes(messy)).failed
    assert check.name == name
    assert words in check.message


def test_a_report_with_digests_of_its_own_is_told_from_the_bundle(messy, verifier, suite):
    messy["report"]["plan"]["digest"] = "sha256:" + "0" * 64
    bundle = reseal(messy, suite)
    bundle["report"]["plan"]["digest"] = "sha256:" + "0" * 64
    from impact_twin.proofrun.bundle import digests_of

    bundle["digests"] = digests_of(bundle["report"])
    check = verifier.verify(bundle_bytes(bundle)).failed
    assert check.name == "digests"
    assert check.message.startswith("report.plan.digest says")


def test_an_unknown_suite_names_the_option(messy_bytes):
    check = ladder.Verifier([]).verify(messy_bytes).failed
    assert check.name == "suite"
    assert "--suite" in check.message


def test_a_check_that_stumbles_has_failed(messy_bytes, suite, monkeypatch):
    def stumble(material):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(ladder, "_LADDER", {**ladder._LADDER, "figures": stumble})
    check = ladder.Verifier([suite]).verify(messy_bytes).failed
    assert check == Check(
        "figures", "failed", "the check can't be made on this file (ZeroDivisionError)"
    )


def test_verifying_reads_no_file(messy_bytes, suite, monkeypatch):
    verifier = ladder.Verifier([suite])
    verifier.verify(messy_bytes)
    opened = []
    monkeypatch.setattr("builtins.open", lambda *args, **kwargs: opened.append(args))
    monkeypatch.setattr("pathlib.Path.open", lambda *args, **kwargs: opened.append(args))
    monkeypatch.setattr("socket.socket", lambda *args, **kwargs: opened.append(args))
    assert verifier.verify(messy_bytes).valid
    assert not opened


def test_hostile_values_in_free_places_do_no_harm(messy, verifier, suite):
    """What a file may say freely may be as hostile as it likes."""
    hostile = "\x1b]0;owned\x07\u202e<script>alert(1)</script>`$(reboot)`"
    agent = messy["report"]["identity"]["agent"]
    agent["name"] = hostile
    agent["more"] = {hostile: [hostile, {"": None}, 1e-7, -1.5]}
    messy["report"]["identity"]["versions"][hostile] = hostile
    messy["report"]["plan"]["platform"] = {hostile: hostile}
    messy["report"]["plan"]["spec"]["label"] = hostile
    messy["report"]["identity"]["run"]["notes"] = [hostile]
    messy["submission"]["notes"] = hostile
    reseal(messy, suite, "figures")
    assert verifier.verify(bundle_bytes(messy)).failed is None


@pytest.mark.parametrize("confidence", [1e-300, 1e-12, 0.5, 1 - 2**-53, 0.999999999999])
def test_extreme_confidences_make_nothing_stumble(messy, verifier, suite, confidence, recwarn):
    messy["report"]["plan"]["confidence"] = confidence
    reseal(messy, suite, "figures")
    failed = json.loads(json.dumps(messy)), verifier.verify(bundle_bytes(messy)).failed
    assert failed[1] is None or failed[1].name in ("schema", "figures"), failed[1]
    assert not recwarn.list
