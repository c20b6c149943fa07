"""Whether repeats add information: copied runs, and runs that don't vary at all."""

from __future__ import annotations

from dataclasses import dataclass

from impact_twin.statistics.disagreement import code_counts
from impact_twin.statistics.table import ObservationTable

NO_COPYING_SEEN = "no copying seen"
NO_VARIATION_SEEN = "no variation seen"
COPIED = "copied"


@dataclass(frozen=True)
class Replicates:
    """Replicates labels of the suite and of each pair (in the table's order)."""

    suite: str
    pairs: tuple[str, ...]


def withholds(label: str) -> bool:
    """Whether a replicates label says that repeats add no information."""
    return label in (NO_VARIATION_SEEN, COPIED)


def replicates(table: ObservationTable, copied: bool = False) -> Replicates:
    """Label the repeats of each pair and of the suite.

    A pair shows `no variation seen` when a twin of it left at least two traces of resolved cases
    and within each twin all of them are identical. The suite does when every pair with repeats
    does.

    Args:
        table: The observations.
        copied: Whether evidence outside the table says so: our cache answered, a response id
            repeats, fewer requests than cases.
    """
    pairs = len(table.pairs)
    if copied:
        return Replicates(COPIED, (COPIED,) * pairs)
    clean = code_counts(table.pair, table.clean.trace, pairs, table.clean.resolved)
    poisoned = code_counts(table.pair, table.poisoned.trace, pairs, table.poisoned.resolved)
    labels, repeated = [], set()
    for one, other in zip(clean, poisoned, strict=True):
        repeats = max(int(one.sum()), int(other.sum())) >= 2
        same = repeats and len(one) <= 1 and len(other) <= 1
        labels.append(NO_VARIATION_SEEN if same else NO_COPYING_SEEN)
        if repeats:
            repeated.add(labels[-1])
    suite = NO_VARIATION_SEEN if repeated == {NO_VARIATION_SEEN} else NO_COPYING_SEEN
    return Replicates(suite, tuple(labels))
