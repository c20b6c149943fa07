"""Times verifying by bundle size, check by check.

    python benchmarks/verify_speed.py [TRIALS ...]

The bundles hold a real run of ten trials, told again with later times and other response ids until
there are as many trials as asked for. 5,300 trials make about 64 MiB.
"""

import copy
import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "proofrun"))

from proofrun_runs import bundle_of, messy_run
from proofrun_tamper import TWINS, reseal

from impact_twin.procurement.suite import load_suite
from impact_twin.proofrun import verify as ladder
from impact_twin.proofrun.bundle import bundle_bytes
from impact_twin.proofrun.digests import planned_cases
from impact_twin.proofrun.reading import ReadLimits

RUN = 10


def longer(bundle, suite, trials):
    """Return a bundle that tells the trials of another again and again."""
    bundle = copy.deepcopy(bundle)
    report = bundle["report"]
    report["plan"].update(trials=trials, most_trials=trials)
    told = {(row["trial"], row["pair"]): row for row in report["pair_trials"]}
    places = {key: place for place, key in enumerate(planned_cases(report))}
    starts = {}
    for key, place in places.items():
        starts.setdefault((key.trial, key.pair), (place // 2, key.twin))
    report["pair_trials"] = []
    for trial in range(1, trials + 1):
        for pair in report["plan"]["pairs"]:
            row = copy.deepcopy(told[(trial - 1) % RUN + 1, pair])
            row["trial"] = trial
            row["order"], row["first"] = starts[trial, pair]
            for twin in TWINS:
                case = row[twin]
                case["position"] = places[pair, trial, twin]
                for timed in (*case["attempts"], *case["model_calls"]):
                    timed["started"] = round(timed["started"] + trial, 3)
                for number, call in enumerate(case["model_calls"]):
                    call["response_id"] = f"resp-{trial}-{pair}-{twin}-{number}-0123456789abcdef"
            report["pair_trials"].append(row)
    return reseal(bundle, suite, "figures")


def main() -> None:
    """Print the seconds of each check and the memory at the end."""
    suite = load_suite()
    with tempfile.TemporaryDirectory() as folder:
        run = messy_run(suite, Path(folder) / "run", modes=("calls",), trials=RUN)
        base = bundle_of(run, suite)
    verifier = ladder.Verifier([suite], ReadLimits(max_bytes=2**28))
    for trials in [int(text) for text in sys.argv[1:]] or [10, 100, 1000]:
        data = bundle_bytes(longer(base, suite, trials) if trials != RUN else base)
        times: dict[str, float] = {}
        steps, make = [], ladder._Steps.make

        def timed(self, name, check, make=make, times=times):
            begun = time.process_time()
            make(self, name, check)
            times[name] = time.process_time() - begun

        ladder._Steps.make = timed
        begun = time.process_time()
        verification = verifier.verify(data)
        total = time.process_time() - begun
        ladder._Steps.make = make
        assert verification.valid, verification.failed
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        steps = ", ".join(f"{name} {seconds:.2f}" for name, seconds in times.items())
        print(f"{trials} trials, {len(data) / 2**20:.1f} MiB: {total:.2f} s, {memory:.0f} MiB")
        print(f"  {steps}", flush=True)


if __name__ == "__main__":
    main()
