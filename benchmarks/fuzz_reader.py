"""Verifies many random inputs: bytes, JSON, and bundles with values replaced and sealed again.

    python benchmarks/fuzz_reader.py [COUNT] [SEED]

Prints which check refused how many. An exception ends it, and so does a check that had to be given
up on. Inputs that are still honest (a claim was changed, and nothing else) are counted as accepted.
"""

import collections
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "proofrun"))

from proofrun_fuzz import broken_bytes, broken_value, dumps, paths_of, random_json
from proofrun_runs import small_bytes

from impact_twin.procurement.suite import load_suite
from impact_twin.proofrun.verify import Verifier


def main() -> None:
    """Run the fuzzing and print what came out."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    chance = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    suite = load_suite()
    with tempfile.TemporaryDirectory() as folder:
        base = small_bytes(suite, Path(folder) / "small")
    paths = paths_of(base)
    verifier = Verifier([suite])
    makers = {
        "bytes": lambda: broken_bytes(chance, base),
        "json": lambda: dumps(random_json(chance)),
        "bundle": lambda: dumps(broken_value(chance, base, paths, suite)),
    }
    found: dict[str, collections.Counter[str]] = {name: collections.Counter() for name in makers}
    slowest, begun = 0.0, time.process_time()
    for _ in range(count):
        name = chance.choices(list(makers), (4, 4, 2))[0]
        data = makers[name]()
        start = time.process_time()
        failed = verifier.verify(data).failed
        slowest = max(slowest, time.process_time() - start)
        if failed is not None and "can't be made" in failed.message:
            Path("stumbled.bin").write_bytes(data)
            raise SystemExit(f"stumbled: {failed}")
        found[name]["accepted" if failed is None else failed.name] += 1
    for name, counts in found.items():
        print(f"{name:8}{sum(counts.values()):7}  {dict(counts.most_common())}")
    print(f"{count} inputs, {time.process_time() - begun:.0f} s, slowest {slowest:.2f} s")


if __name__ == "__main__":
    main()
