"""The tamper suite: changed bundles with every digest computed again; none may be accepted."""

import json

import pytest
from proofrun_mutations import KINDS, chosen, try_all
from proofrun_tamper import LEVELS, reseal

from impact_twin.canonical import canonical_bytes


@pytest.fixture(scope="module")
def base(messy_bytes):
    return json.loads(messy_bytes)


@pytest.fixture(scope="module")
def text(messy_bytes):
    return messy_bytes


@pytest.mark.parametrize("kind", KINDS)
def test_no_mutation_is_accepted(kind, base, text, suite, verifier):
    assert len(list(try_all(chosen(kind, base), kind, text, suite, verifier))) > 20


def test_there_are_enough_mutations(base):
    assert sum(len(chosen(kind, base)) for kind in KINDS) >= 600


def test_the_base_holds_and_resealing_it_changes_nothing(base, text, suite, verifier):
    for level in LEVELS:
        bundle = json.loads(text)
        reseal(bundle, suite, level, base)
        assert canonical_bytes(bundle) == text
    assert verifier.verify(text).valid
