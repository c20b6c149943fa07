"""Stops a run whose every case fails for one and the same reason."""

from __future__ import annotations

import threading

from impact_twin.text import escape
from impact_twin.trials.records import CaseRecord

FEWEST = 4

_MENDS = {
    "auth": "Check the API key of the model (an environment variable such as OPENAI_API_KEY).",
    "no_such_model": "Check the model's id.",
    "connection": "Check the endpoint's address and the network.",
    "quota": "Check the account's credit with the provider.",
    "bad_request": "Check the model's id and its parameters.",
}
# Settings of the run, which no agent knows.
_MENDS_OF_RUN = {
    "rate_limit": "Lower --concurrency, or ask the provider for a higher limit.",
    "timeout_in_request": "Raise --timeout, or check the endpoint's address and the network.",
}


class Breaker:
    """Counts finished cases that ended, one after the other, in the same infrastructure error.

    Args:
        concurrency: Cases that run at once; so many may have failed before the first could be seen.
        told: Whether the agent's own messages say what to mend.
    """

    def __init__(self, concurrency: int, *, told: bool = False) -> None:
        self._mends = _MENDS_OF_RUN if told else _MENDS_OF_RUN | _MENDS
        self._lock = threading.Lock()
        self._most = max(FEWEST, concurrency)
        self._kind = ""
        self._streak = 0

    def saw(self, record: CaseRecord) -> str:
        """Count a finished case; return why the run must stop, or an empty string."""
        last = record.attempts[-1]
        kind = last.error_kind or "unknown"
        with self._lock:
            if record.termination != "infrastructure_error":
                self._kind, self._streak = "", 0
                return ""
            self._streak = self._streak + 1 if kind == self._kind else 1
            self._kind = kind
            if self._streak < self._most:
                return ""
        status = f", HTTP {last.http_status}" if last.http_status is not None else ""
        said = f": {escape(last.message)}" if last.message else ""
        first = f"{self._most} cases in a row failed for one reason ({escape(kind)}{status}){said}"
        mend = self._mends.get(kind, "")
        end = "These cases are final: begin a new run once that is mended."
        return " ".join(filter(None, (first.removesuffix(".") + ".", mend, end)))
