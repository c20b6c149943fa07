"""Real runs to make bundles of: agents that fail in every way that a run may meet."""

import hashlib
import threading
import time
import uuid

from impact_twin.agents.calling import Instances, call_agent
from impact_twin.agents.demo import Careful, Gullible, Wavering
from impact_twin.agents.protocol import CaseOutcome, ModelCall, Usage
from impact_twin.proofrun.bundle import bundle_bytes, make_bundle
from impact_twin.report.model import build_report
from impact_twin.trials.case import Backoff
from impact_twin.trials.plan import Limits, case_order, case_seed, make_plan
from impact_twin.trials.runner import run

LIMITS = Limits(timeout_s=2.0, retries=2)
# What the case at each planned place does; the list is gone through again for longer plans.
MODES = (
    "calls", "harmed", "plain", "fails_once", "calls", "unreachable", "hangs", "gullible",
    "refused", "calls", "calls", "fell", "breaks", "removed", "plain", "calls", "refused_key",
    "goes_away", "calls", "calls", "limit", "fell", "calls", "gullible", "altered", "calls",
)  # fmt: skip


class MessySource:
    """An agent source whose cases do what their place in the plan says.

    Args:
        modes: Behaviours in plan order (`MODES`), each case taking the next.
        trials: Trials of the plan.
        options: What else goes to `make_plan`.
    """

    def __init__(self, suite, modes=MODES, *, trials=2, limits=LIMITS, **options):
        self._instances = Instances()
        self._tries = {}
        self._lock = threading.Lock()
        self.plan = make_plan(suite, self, trials=trials, limits=limits, **options)
        self._modes = {
            case_seed(self.plan, key): modes[place % len(modes)]
            for place, key in enumerate(case_order(self.plan))
        }

    @property
    def spec(self):
        return {"kind": "factory", "target": "messy:build", "label": None}

    def identity(self):
        return {"name": "messy", "kind": "factory", "target": "messy:build"}

    def prepare(self):
        pass

    def modes_again(self):
        """Count tries anew, as a new process would."""
        self._tries.clear()

    def run_case(self, request):
        with self._lock:
            tries = self._tries[request.seed] = self._tries.get(request.seed, 0) + 1
        return getattr(self, f"_{self._modes[request.seed]}")(request, tries)

    def _work(self, request, kind=Wavering):
        return call_agent(lambda: kind(request.seed), request, self._instances)

    def _plain(self, request, tries):
        done = self._work(request)
        return CaseOutcome(
            done.termination,
            done.final_answer,
            usage=Usage(120, 40, 0.0021),
            instance=done.instance,
            detail={"reported_tool_calls": ["read_document", "recommend_award"]},
        )

    def _gullible(self, request, tries):
        return self._work(request, Gullible)

    def _calls(self, request, tries, kind=Wavering):
        shown = []

        def call(name, arguments):
            shown.append(request.call(name, arguments))
            return shown[-1]

        done = self._work(_with_call(request, call), kind)
        for place in range(3):
            self._ask(request, place)
        request.monitor.delivered(shown)
        return CaseOutcome(done.termination, done.final_answer, instance=done.instance)

    def _fell(self, request, tries):
        return self._calls(request, tries, Gullible)

    def _removed(self, request, tries):
        done = self._work(request)
        request.monitor.delivered(["all of it was taken out"])
        return done

    def _altered(self, request, tries):
        shown = []

        def call(name, arguments):
            shown.append(request.call(name, arguments))
            return shown[-1]

        done = self._work(_with_call(request, call))
        request.monitor.delivered([text[: len(text) * 7 // 10] for text in shown])
        return done

    def _fails_once(self, request, tries):
        if tries > 1:
            return self._calls(request, tries)
        self._fail(request, "rate_limit", 429)
        return CaseOutcome("infrastructure_error", "", "rate_limit", "try later", 429)

    def _unreachable(self, request, tries):
        self._fail(request, "connection", None)
        return CaseOutcome("infrastructure_error", "", "connection", f"no route ({tries})")

    def _goes_away(self, request, tries):
        request.call("list_documents", {})
        return CaseOutcome("infrastructure_error", "", "connection", "gone")

    def _refused_key(self, request, tries):
        self._fail(request, "auth", 401)
        return CaseOutcome("infrastructure_error", "", "auth", "the key was refused", 401)

    def _harmed(self, request, tries):
        self._work(request, Gullible)
        self._fail(request, "server_error", 503)
        return CaseOutcome("infrastructure_error", "", "server_error", "went away", 503)

    def _breaks(self, request, tries):
        request.call("read_document", {"document_id": "D-000"})
        request.call("no_such_tool", {"a": [1, 2.5, None, True, {"b": "\u202e"}]})
        request.call("record_evaluation", "not an object")
        return CaseOutcome("agent_error", "", "exception", "ValueError: \u202eoops")

    def _refused(self, request, tries):
        request.call("list_documents", {})
        self._fail(request, "content_filter", 400)
        return CaseOutcome("refused", "", "content_filter", "not with us", 400)

    def _limit(self, request, tries):
        done = self._work(request, Careful)
        return CaseOutcome("limit", done.final_answer, "max_iters", "too many turns")

    def _hangs(self, request, tries):
        request.call("list_documents", {})
        time.sleep(request.deadline_s + 0.5)
        return CaseOutcome("completed", "too late")

    def _ask(self, request, place):
        """One request to a model that answers well."""
        request.monitor.request_started()
        number = int(hashlib.sha256(f"{request.seed} {place}".encode()).hexdigest()[:6], 16)
        request.monitor.request_finished(
            ModelCall(
                started=time.time(),
                duration_s=0.01 + number / 2**28,
                finish_reason="stop",
                response_id=f"resp-{uuid.uuid4()}",
                usage=Usage(100 + number % 50, 20 + place, 0.001 * (number % 7)),
            )
        )

    def _fail(self, request, kind, status):
        request.monitor.request_started()
        request.monitor.request_finished(
            ModelCall(started=time.time(), duration_s=0.02, error=kind, http_status=status)
        )


def _with_call(request, call):
    import dataclasses

    return dataclasses.replace(request, call=call)


def messy_run(suite, folder, *, modes=MODES, trials=2, limits=LIMITS, **options):
    """Run the messy source and return its run."""
    source = MessySource(suite, modes, trials=trials, limits=limits, **options)
    return run(
        source.plan,
        suite,
        source,
        folder,
        concurrency=4,
        backoff=Backoff(first_s=0.001, cap_s=0.01),
    )


def small_bytes(suite, folder):
    """Return the bytes of a small bundle with something of everything, for fuzzing."""
    modes = ("calls", "fails_once", "altered", "plain")
    found = messy_run(suite, folder, modes=modes, pairs=[suite.pairs[0].id])
    return bundle_bytes(bundle_of(found, suite))


def bundle_of(run_data, suite, *, gates=(), **options):
    """Return the bundle of a run."""
    report = build_report(run_data, suite, gates=gates)
    options = {"submitter": "@somebody", "source": "https://example.org/agent"} | options
    return make_bundle(report, **options)
