"""What a CI system says of the job that it runs; claims until an attestation confirms them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from impact_twin.procurement.model import JSON
from impact_twin.text import storable

PROVIDER = "github-actions"
MAX_TEXT = 400

_TEXTS = {
    "repository": "GITHUB_REPOSITORY",
    "workflow_ref": "GITHUB_WORKFLOW_REF",
    "ref": "GITHUB_REF",
    "sha": "GITHUB_SHA",
    "event": "GITHUB_EVENT_NAME",
    "runner_environment": "RUNNER_ENVIRONMENT",
}
_NUMBERS = {
    "run_id": "GITHUB_RUN_ID",
    "run_attempt": "GITHUB_RUN_ATTEMPT",
    "run_number": "GITHUB_RUN_NUMBER",
}
_NUMBER = re.compile(r"[1-9][0-9]{0,14}")


def ci_claims(environment: Mapping[str, str]) -> dict[str, JSON] | None:
    """Return the identity of the GitHub Actions run that this is; None outside of one.

    Args:
        environment: The process's environment variables.

    Returns:
        `provider` and texts by name, empty where the variable isn't set; `run_id`,
        `run_attempt` and `run_number` (how many runs of its workflow the repository has had) as
        whole numbers, None where they aren't set.
    """
    if environment.get("GITHUB_ACTIONS") != "true":
        return None
    claims: dict[str, JSON] = {"provider": PROVIDER}
    for name, variable in _TEXTS.items():
        claims[name] = storable(environment.get(variable, ""))[:MAX_TEXT]
    for name, variable in _NUMBERS.items():
        found = _NUMBER.fullmatch(environment.get(variable, ""))
        claims[name] = None if found is None else int(found.group())
    return claims
