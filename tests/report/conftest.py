"""Real runs of demo agents, and runs put together from their cases trial by trial."""

import dataclasses
from dataclasses import replace

import pytest

from impact_twin.agents import load_source
from impact_twin.procurement.model import TWINS, trace_digest
from impact_twin.procurement.runtime import CaseRuntime
from impact_twin.procurement.suite import load_suite
from impact_twin.report.model import build_report
from impact_twin.trials.plan import Limits, make_plan
from impact_twin.trials.records import Attempt, CaseKey, RunData
from impact_twin.trials.runner import run

STYLES = ("careful", "gullible")
TRIALS = 2


class Stage:
    """Puts runs together: every case in them is one that a demo agent really ran."""

    def __init__(self, suite, runs):
        self.suite = suite
        self.runs = runs
        self.pairs = [pair.id for pair in suite.pairs]

    def plan(self, trials, pairs=None, **options):
        source = load_source(
            {"kind": "demo", "name": "careful", "label": options.pop("label", None)}
        )
        return make_plan(self.suite, source, trials=trials, pairs=pairs, **options)

    def run(self, scripts, *, plan=None, **changes):
        """A run whose pair-trials go by script: `{pair: "rfeu..."}`, one letter a trial.

        r: both twins work carefully. f: the poisoned twin falls for the poison. b: both twins act
        gullibly. e: the poisoned case ends in an infrastructure error. t: the poisoned case runs
        out of time. u: neither case ran. v: as r, with another last word in the poisoned case.
        """
        trials = len(next(iter(scripts.values())))
        plan = plan or self.plan(trials, list(scripts))
        traces, texts, cases = {}, {}, {}
        for source in self.runs.values():
            traces.update(source.traces)
            texts.update(source.texts)
        position = 0
        for pair, script in scripts.items():
            for trial, letter in enumerate(script, 1):
                for twin in TWINS:
                    record = self.record(letter, CaseKey(pair, trial, twin), traces, texts)
                    if record is not None:
                        cases[record.key] = replace(record, position=position)
                        position += 1
        return RunData(plan=plan, cases=cases, traces=traces, texts=texts, **changes)

    def record(self, letter, key, traces, texts):
        if letter == "u":
            return None
        if letter in "et" and key.twin == "poisoned":
            end = {"e": "infrastructure_error", "t": "timeout"}[letter]
            return self.cut_short(end, key, traces, texts)
        if letter == "v" and key.twin == "poisoned":
            return self.reworded(key, traces)
        style = (
            "gullible" if letter == "b" or (letter == "f" and key.twin == "poisoned") else "careful"
        )
        played = self.runs[style].cases[CaseKey(key.pair, 1, key.twin)]
        return replace(played, key=key, instance=None)

    def reworded(self, key, traces):
        played = self.runs["careful"].cases[CaseKey(key.pair, 1, key.twin)]
        trace = {**traces[played.trace], "final_answer": f"Done, trial {key.trial}."}
        name = trace_digest(trace)
        traces[name] = trace
        attempt = replace(played.attempts[0], trace=name)
        return replace(played, key=key, trace=name, attempts=(attempt,), instance=None)

    def cut_short(self, end, key, traces, texts):
        trace = CaseRuntime(self.suite, key.pair, key.twin).trace(end).to_json(texts)
        name = trace_digest(trace)
        traces[name] = trace
        attempt = Attempt(end, "rate_limit", "429 too many requests", 429, 0, 1.7e9, 2.5, name)
        played = self.runs["careful"].cases[CaseKey(key.pair, 1, key.twin)]
        return dataclasses.replace(
            played,
            key=key,
            termination=end,
            trace=name,
            attempts=(attempt,),
            delivered=None,
            instance=None,
        )

    def report(self, scripts, *, gates=(), **changes):
        return build_report(self.run(scripts, **changes), self.suite, gates=gates)


@pytest.fixture(scope="session")
def suite():
    return load_suite()


def demo_run(suite, folder, style, trials, **options):
    source = load_source({"kind": "demo", "name": style, "label": None})
    source.prepare()
    limits = Limits(timeout_s=30, retries=0)
    plan = make_plan(suite, source, trials=trials, limits=limits, **options)
    return run(plan, suite, source, folder, concurrency=2)


@pytest.fixture(scope="session")
def stage(suite, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    runs = {style: demo_run(suite, folder / style, style, TRIALS) for style in STYLES}
    return Stage(suite, runs)


@pytest.fixture(scope="session")
def wavering(suite, tmp_path_factory):
    """A real run directory of the stochastic demo agent, and its run."""
    folder = tmp_path_factory.mktemp("runs") / "wavering"
    return folder, demo_run(suite, folder, "wavering", 6, seed=3)


@pytest.fixture(scope="session")
def report(wavering, suite):
    """The report of a real run; tests must not change it."""
    return build_report(wavering[1], suite)
