"""Seeded uniform draws that stay the same in every release of numpy."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


class Draws:
    """Uniform numbers from the raw PCG64 stream.

    numpy keeps the streams of its bit generators, but not those of `Generator` methods, and a
    figure in a stored report must come out the same when it is derived again years later.

    Args:
        seed: Any integer >= 0.
    """

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def uniform(self, size: int) -> npt.NDArray[np.float64]:
        """Numbers in [0, 1) with 53 bits, shape (size,)."""
        raw = np.asarray(self._bits.random_raw(size), dtype=np.uint64)
        return (raw >> np.uint64(11)).astype(np.float64) * 2.0**-53

    def below(self, bound: int, size: int) -> npt.NDArray[np.int64]:
        """Whole numbers from 0 to bound - 1, shape (size,)."""
        return (self.uniform(size) * bound).astype(np.int64)
