"""Runs a job in a fresh interpreter that may change AgentDojo, so that this one never does.

Importing `agentdojo.default_suites.v1_1_2` writes to task tables that every benchmark version in
the process shares, and importing AgentDojo at all changes what `yaml.dump` prints. Both would reach
whatever runs here next. The child is started isolated (`-I`) with this process's import path, gets
its job as JSON on standard input and answers with JSON on standard output.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import impact_twin
from impact_twin.errors import ImpactTwinError

_START = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from impact_twin.audit.worker import main; sys.exit(main())"
)


def run_fresh(job: dict[str, Any]) -> Any:
    """Run one job (see `impact_twin.audit.worker`) and return its answer.

    Raises:
        ImpactTwinError: the child failed; the last line that it wrote is in the message.
    """
    # The same folders, so that the child has the same AgentDojo; not "wherever we are", though.
    here = str(Path(impact_twin.__file__).parents[1])
    path = list(dict.fromkeys([entry for entry in sys.path if entry] + [here]))
    done = subprocess.run(  # noqa: S603 - our own interpreter and our own code
        [sys.executable, "-I", "-c", _START, *path],
        input=json.dumps(job, ensure_ascii=True).encode("ascii"),
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise ImpactTwinError(
            "the fresh interpreter that loads AgentDojo failed: "
            + (said[-1] if said else f"exit code {done.returncode}"),
            mend="Check that agentdojo can be imported in this environment.",
        )
    return json.loads(done.stdout)
