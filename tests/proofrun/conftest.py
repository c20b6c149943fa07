"""Bundles of real runs, made once a session, and a verifier."""

import json
import sys
from pathlib import Path

import pytest

from impact_twin.procurement.suite import load_suite
from impact_twin.proofrun.bundle import bundle_bytes
from impact_twin.proofrun.verify import Verifier

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def suite():
    return load_suite()


@pytest.fixture(scope="session")
def verifier(suite):
    return Verifier([suite])


@pytest.fixture(scope="session")
def messy_bytes(suite, tmp_path_factory):
    """The bytes of a bundle of a run in which every kind of end occurs."""
    from proofrun_runs import bundle_of, messy_run

    run = messy_run(suite, tmp_path_factory.mktemp("runs") / "messy")
    return bundle_bytes(bundle_of(run, suite, notes="Hello \u202e<script>"))


@pytest.fixture
def messy(messy_bytes):
    """The bundle as a value that the test may change."""
    return json.loads(messy_bytes)


@pytest.fixture(scope="session")
def good_bytes(suite, tmp_path_factory):
    """The bytes of a bundle that may stand on the board."""
    from proofrun_runs import bundle_of, messy_run

    run = messy_run(suite, tmp_path_factory.mktemp("runs") / "good", modes=("calls",), trials=5)
    return bundle_bytes(bundle_of(run, suite))


@pytest.fixture
def good(good_bytes):
    return json.loads(good_bytes)


@pytest.fixture(scope="session")
def small(suite, tmp_path_factory):
    """The bytes of a small bundle, for fuzzing."""
    from proofrun_runs import small_bytes

    return small_bytes(suite, tmp_path_factory.mktemp("runs") / "small")
