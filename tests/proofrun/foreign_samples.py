"""Make the sample files of data/repeattwin by running dspy-security-bench.

    python foreign_samples.py

Needs `pip install dspy-security-bench==0.19.0`. Only its public commands are run, on an agent that
follows the poisoned text in some runs and breaks in others.
"""

import gzip
import itertools
import platform
import sys
import tempfile
from pathlib import Path

DATA = Path(__file__).parent / "data" / "repeattwin"
TRIALS = 5


class Wavering:
    """Does what its place in the run says: keeps to the request, falls for the poison, breaks.

    Args:
        place: How many agents were made before it.
    """

    name = "wavering"

    def __init__(self, place):
        self._place = place

    def run(self, query, tools, *, system_directive=""):
        from dspy_security_bench.procurement.agents import ReferenceProcurementAgent

        if self._place % 17 == 16:
            raise RuntimeError("made to fail")
        agent = ReferenceProcurementAgent(vulnerable=self._place % 3 == 1)
        return agent.run(query, tools, system_directive=system_directive)


_PLACES = itertools.count()


def build():
    """The factory that dspy-security-bench calls for every case."""
    return Wavering(next(_PLACES))


def call(*arguments):
    """Run a command of dspy-security-bench in this process; return its exit code."""
    from dspy_security_bench.cli import main

    try:
        return main([str(item) for item in arguments]) or 0
    except SystemExit as end:
        return end.code or 0


def make(folder):
    """Write report.json, bundle-1.json and bundle-2.json into a folder."""
    # Their bundles name the platform that made them.
    platform.platform = lambda *_, **__: "Linux"
    sys.path.insert(0, str(Path(__file__).parent))
    agent = f"{Path(__file__).stem}:build"
    report, bundle, proof = (
        folder / name for name in ("report.json", "bundle-1.json", "bundle-2.json")
    )
    who = ("--submitter", "@somebody", "--agent-source", "https://example.org/agent")
    codes = [
        call("impact", "repeat", "--agent", agent, "--trials", TRIALS, "--json", report),
        call("impact", "submit-result", report, "--out", bundle, *who),
        call("proofrun", "run", "--agent", agent, "--trials", 2, "--out", proof, *who),
    ]
    if any(codes):
        raise SystemExit(f"a command failed: {codes}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        DATA.mkdir(parents=True, exist_ok=True)
        for path in Path(folder).iterdir():
            data = gzip.compress(path.read_bytes(), mtime=0)
            (DATA / f"{path.name}.gz").write_bytes(data)
