"""Draws that may never change."""

import numpy as np
import pytest

from impact_twin.statistics.draws import Draws


def test_the_stream_is_fixed():
    assert Draws(7).below(1000, 6).tolist() == [625, 897, 775, 225, 300, 873]


def test_a_seed_gives_one_stream_and_another_seed_another():
    assert Draws(1).uniform(50).tolist() == Draws(1).uniform(50).tolist()
    assert Draws(1).uniform(50).tolist() != Draws(2).uniform(50).tolist()


def test_they_are_uniform():
    numbers = Draws(3).uniform(200_000)
    assert numbers.min() >= 0.0
    assert numbers.max() < 1.0
    shares = np.bincount(Draws(3).below(7, 200_000), minlength=7) / 200_000
    assert shares == pytest.approx(np.full(7, 1 / 7), abs=0.004)
