"""How often each interval covers and each word is wrong: the tables of docs/statistics.md.

Run: python benchmarks/coverage.py [--only NAME ...] [--write docs/statistics.md]

Everything is exact unless its table says how many seeded simulations it took.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from coverage_intervals import (
    bootstrap,
    difference,
    repeated,
    sequential,
    single,
    suite,
    unresolved,
)
from coverage_words import decision, gates, order, replicates, stable, verdicts

TABLES: dict[str, Callable[[], str]] = {
    call.__name__: call
    for call in (
        single,
        unresolved,
        suite,
        difference,
        repeated,
        stable,
        replicates,
        order,
        decision,
        verdicts,
        gates,
        sequential,
        bootstrap,
    )
}


def inserted(text: str, name: str, made: str) -> str:
    """The page with one table replaced between its markers.

    Raises:
        ValueError: The page has no such markers.
    """
    start, end = f"<!-- table: {name} -->", f"<!-- end: {name} -->"
    before, found, rest = text.partition(start)
    if not found or end not in rest:
        raise ValueError(f"the page has no markers for the table {name}")
    return f"{before}{start}\n{made}\n{end}{rest.partition(end)[2]}"


def main(arguments: Sequence[str]) -> int:
    """Make the chosen tables; print them or put them into a page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=TABLES, default=list(TABLES))
    parser.add_argument("--write", type=Path)
    options = parser.parse_args(arguments)
    for name in options.only:
        made = TABLES[name]()
        if options.write is None:
            print(f"## {name}\n\n{made}\n", flush=True)
            continue
        page = options.write.read_text(encoding="utf-8")
        options.write.write_text(inserted(page, name, made), encoding="utf-8")
        print(f"{name}: written", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
