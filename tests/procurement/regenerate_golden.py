"""Fills in the trace digests of the golden situations; run it when a suite's words change.

    python tests/procurement/regenerate_golden.py [SUITE_FOLDER]

Verdicts are written by hand, from the rules. This script never changes one: a situation whose
verdict isn't what its file says is printed, nothing is written, and the exit code is 1.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from impact_twin.procurement import golden
from impact_twin.procurement.suite import Suite, load_suite


def refilled(suite: Suite, situation: Mapping[str, Any]) -> dict[str, Any]:
    """Return a situation of one case with its trace digest as it is now.

    Raises:
        ValueError: the verdict isn't what the situation says.
    """
    now = golden.record(suite, situation)
    for field, value in now["verdict"].items():
        if value != situation["verdict"][field]:
            raise ValueError(
                f"{situation['name']}: {field} is {value!r}, "
                f"the file says {situation['verdict'][field]!r}"
            )
    return now


def main(arguments: list[str]) -> int:
    """Fill in the digests of a suite, or say which verdicts disagree."""
    suite = load_suite(Path(arguments[0]) if arguments else None)
    by_name = {situation["name"]: file for file, situation in suite.golden.items()}
    written: dict[Path, str] = {}
    wrong = []
    for name, situation in golden.cases(suite).items():
        try:
            now = refilled(suite, situation)
        except ValueError as error:
            wrong.append(str(error))
            continue
        if now != situation:
            text = json.dumps(now, indent=1, ensure_ascii=False) + "\n"
            written[suite.folder / "golden" / by_name[name]] = text
    for line in wrong:
        print(line)
    if wrong:
        return 1
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
    print(f"{len(written)} of {len(by_name)} files written")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
