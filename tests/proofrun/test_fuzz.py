"""The reader on random input: it says what is wrong, and never anything else.

A short run; benchmarks/fuzz_reader.py makes the long one.
"""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from proofrun_fuzz import broken_bytes, broken_value, dumps, paths_of, random_json

from impact_twin.proofrun.reading import ReadLimits
from impact_twin.proofrun.verify import Verifier

# A check that had to be given up on hides a case that nobody thought of.
STUMBLED = "can't be made"
LIMITS = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)


def calm(verifier, data):
    verification = verifier.verify(data)
    failed = verification.failed
    assert verification.valid == (failed is None)
    assert failed is None or STUMBLED not in failed.message, failed
    return verification


@settings(LIMITS, max_examples=200)
@given(st.binary(max_size=200))
def test_any_bytes(data):
    calm(Verifier([]), data)


@settings(LIMITS, max_examples=200)
@given(st.text(alphabet='{}[]":,\\0123456789.-+eEtruefalsn\u202e\ud800', max_size=60))
def test_anything_like_json(text):
    calm(Verifier([], ReadLimits(max_depth=8)), text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("seed", range(4))
def test_broken_bundles(seed, small, suite, verifier):
    chance, paths = random.Random(seed), paths_of(small)
    for _ in range(25):
        calm(verifier, broken_bytes(chance, small))
        calm(verifier, dumps(random_json(chance)))
        calm(verifier, dumps(broken_value(chance, small, paths, suite)))
