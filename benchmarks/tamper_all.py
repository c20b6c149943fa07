"""Tries every mutation of the tamper suite on a bundle, not only the share that the tests try.

python benchmarks/tamper_all.py [BUNDLE] [KIND ...]
"""

import collections
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests" / "proofrun"
sys.path.insert(0, str(TESTS))

from proofrun_mutations import KINDS, chosen, try_all  # noqa: E402

from impact_twin.canonical import loads_strict  # noqa: E402
from impact_twin.procurement.suite import load_suite  # noqa: E402
from impact_twin.proofrun.verify import Verifier  # noqa: E402


def main() -> None:
    """Print, for each kind of mutation, how many were made and which check caught them."""
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else TESTS / "data" / "messy.bundle.json"
    text, suite = path.read_bytes(), load_suite()
    base, verifier = loads_strict(text), Verifier([suite])
    assert verifier.verify(text).valid
    total = 0
    for kind in sys.argv[2:] or KINDS:
        begun = time.process_time()
        mutations = chosen(kind, base, most=10**9)
        caught = collections.Counter(try_all(mutations, kind, text, suite, verifier))
        total += len(mutations)
        print(f"{kind:13}{len(mutations):5} {time.process_time() - begun:6.1f} s  {dict(caught)}")
    print(f"{total} mutations, none accepted")


if __name__ == "__main__":
    main()
