"""Makes the bundles of tests/proofrun/data anew; run it when a suite's words change.

    python tests/proofrun/regenerate_samples.py

wavering.bundle.json is of five trials of the demo agent, messy.bundle.json of a run in which cases
end in every way (proofrun_runs.py). They hold that a bundle that was made once verifies on every
Python, and with every later version.
"""

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from proofrun_runs import bundle_of, messy_run

from impact_twin.agents import load_source
from impact_twin.procurement.suite import load_suite
from impact_twin.proofrun.bundle import bundle_bytes
from impact_twin.proofrun.verify import Verifier
from impact_twin.trials.plan import make_plan
from impact_twin.trials.runner import run

DATA = Path(__file__).parent / "data"


def main() -> None:
    """Write both bundles, once they verify."""
    suite = load_suite()
    with tempfile.TemporaryDirectory() as folder:
        source = load_source({"kind": "demo", "name": "wavering", "label": None})
        plan = make_plan(suite, source, trials=5, seed=7)
        runs = {
            "wavering": run(plan, suite, source, Path(folder) / "wavering"),
            "messy": messy_run(suite, Path(folder) / "messy"),
        }
        for name, found in runs.items():
            data = bundle_bytes(bundle_of(found, suite, notes="A sample."))
            assert Verifier([suite]).verify(data).valid
            (DATA / f"{name}.bundle.json").write_bytes(data)


if __name__ == "__main__":
    main()
