"""How many trials a question needs, and what they would cost by a pilot report."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.report.gates import parse_gate
from impact_twin.report.observations import iter_cases

KIND = "impact-twin/trial-plan"
SCHEMA_VERSION = 1


@dataclass(frozen=True)
class Questions:
    """What is asked; None is not asked.

    Attributes:
        half_width: Half-width of Wilson's interval, in (0, 0.5).
        rate: The rate expected there, in [0, 1].
        gate: A gate as `repeat --gate` takes it.
        failures: Pair-trials against the gate that it shall survive, >= 0.
        flip_rate: How often any other outcome may occur, to be excluded, in (0, 1).
        deviations: Trials with another outcome, >= 0.
        apart: Rates of two agents to tell apart.
        power: Probability of a verdict, in (0, 1).
        pairs: Pairs of the suite, >= 1.
        confidence: In (0, 1).
    """

    half_width: float | None = None
    rate: float = 0.5
    gate: str | None = None
    failures: int = 0
    flip_rate: float | None = None
    deviations: int = 0
    apart: tuple[float, float] | None = None
    power: float = 0.8
    pairs: int = 5
    confidence: float = 0.95


def plan_trials(questions: Questions, pilot: Mapping[str, JSON] | None = None) -> dict[str, JSON]:
    """Answer every question that was asked.

    Returns:
        `answers[]`, each with `question`, `n` (cases of the rate), `trials` (passes over the pairs
        for the suite as a whole), `trials_per_pair` (for every pair by itself; None where the
        question has no such reading), `note`, and with a pilot `estimate`; and `pilot`.

    Raises:
        InputError: nothing was asked, or a number is outside its domain.
    """
    if questions.pairs < 1:
        raise InputError("below 1", where="--pairs", mend="Give the number of pairs.")
    answers = []
    if questions.half_width is not None:
        answers.append(_half_width(questions, questions.half_width))
    if questions.gate is not None:
        answers.append(_gate(questions, questions.gate))
    if questions.flip_rate is not None:
        answers.append(_flip_rate(questions, questions.flip_rate))
    if questions.apart is not None:
        answers.append(_apart(questions, *questions.apart))
    if not answers:
        raise InputError(
            "nothing is asked",
            mend="Add --half-width 0.1, --gate 'secure_utility >= 0.8', --flip-rate 0.1 or "
            "--apart 0.6 0.8.",
        )
    per_trial = None if pilot is None else _per_trial(pilot, questions.pairs)
    if per_trial is not None:
        for answer in answers:
            answer["estimate"] = _estimate(per_trial, answer["agents"] * answer["trials"])
    return {
        "kind": KIND,
        "schema_version": SCHEMA_VERSION,
        "pairs": questions.pairs,
        "confidence": questions.confidence,
        "answers": answers,
        "pilot": per_trial,
    }


def _half_width(questions: Questions, half_width: float) -> dict[str, JSON]:
    from impact_twin.statistics.planning import n_for_half_width

    n = _checked("--half-width", n_for_half_width, half_width, questions.rate, questions.confidence)
    return _answer(
        f"an interval no wider than +- {half_width:g} at a rate of {questions.rate:g}",
        n,
        questions,
        "Wilson. A rate of 0.5 is the worst case.",
    )


def _gate(questions: Questions, text: str) -> dict[str, JSON]:
    from impact_twin.statistics.planning import n_for_gate, n_for_upper_gate

    gate = parse_gate(text)
    needed = n_for_gate if gate.end == "lower" else n_for_upper_gate
    n = _checked("--gate", needed, gate.threshold, questions.failures, questions.confidence)
    return _answer(
        f"the gate {gate.text}, passed with {questions.failures} against it",
        n,
        questions,
        "An agent whose true rate is near the threshold fails it most of the time, however many "
        "trials.",
    )


def _flip_rate(questions: Questions, flip_rate: float) -> dict[str, JSON]:
    from impact_twin.statistics.planning import n_for_flip_rate

    one = questions.confidence
    joint = 1 - (1 - one) / questions.pairs
    n = _checked("--flip-rate", n_for_flip_rate, flip_rate, questions.deviations, one)
    together = _checked("--flip-rate", n_for_flip_rate, flip_rate, questions.deviations, joint)
    answer = _answer(
        f"a pair's other outcomes rarer than {flip_rate:g}, with {questions.deviations} seen",
        n,
        questions,
        f"Exact, one-sided. For all {questions.pairs} pairs together: {together} trials.",
    )
    # The question is about single pairs, so the suite's trials are the joint answer.
    return answer | {"trials": together, "trials_per_pair": n}


def _apart(questions: Questions, a: float, b: float) -> dict[str, JSON]:
    from impact_twin.statistics.planning import trials_to_tell_apart

    found = _checked(
        "--apart", trials_to_tell_apart, a, b, questions.power, questions.pairs,
        questions.confidence,
    )  # fmt: skip
    answer = _answer(
        f"agents of rate {a:g} and {b:g} told apart with power {questions.power:g}",
        found.trials * questions.pairs,
        questions,
        f"Of each agent. By {found.simulations} simulations: power {found.power:.3f} "
        f"(standard error {found.standard_error:.3f}).",
    )
    return answer | {"trials_per_pair": None, "agents": 2}


def _answer(question: str, n: int, questions: Questions, note: str) -> dict[str, JSON]:
    return {
        "question": question,
        "n": n,
        "trials": math.ceil(n / questions.pairs),
        "trials_per_pair": n,
        "agents": 1,
        "note": note,
    }


def _checked(option: str, function: JSON, *arguments: JSON) -> JSON:
    try:
        return function(*arguments)
    except ValueError as err:
        raise InputError(str(err), where=option) from None


def _per_trial(pilot: Mapping[str, JSON], pairs: int) -> dict[str, JSON]:
    """What one trial took in the pilot: means over its cases that ran."""
    cases = [row.case for row in iter_cases(pilot) if row.case["attempts"]]
    if not cases:
        raise InputError("no case of it ran", where="--pilot", mend="Name another report.")
    scale = 2 * pairs / len(cases)
    usage = [case["usage"] for case in cases if case["usage"] is not None]
    costs = [item["cost_usd"] for item in usage if item["cost_usd"] is not None]
    tokens = sum(item["input_tokens"] + item["output_tokens"] for item in usage)
    return {
        "cases": len(cases),
        "case_seconds": scale * math.fsum(case["duration_s"] for case in cases),
        "tokens": 2 * pairs * tokens / len(usage) if usage else None,
        # Means over the cases that say it, so that a silent case is not taken as free.
        "cost_usd": 2 * pairs * math.fsum(costs) / len(costs) if costs else None,
        "priced_cases": len(costs),
    }


def _estimate(per_trial: Mapping[str, JSON], trials: int) -> dict[str, JSON]:
    return {
        name: None if per_trial[name] is None else round(trials * per_trial[name], 6)
        for name in ("case_seconds", "tokens", "cost_usd")
    }


def render_plan(result: Mapping[str, JSON], concurrency: int, *, width: int = 80) -> str:
    """Return the answers as text of at most so many columns."""
    lines = [f"At {100 * result['confidence']:g} % confidence, {result['pairs']} pairs."]
    for answer in result["answers"]:
        lines += ["", *textwrap.wrap(answer["question"], width)]
        per_pair = answer["trials_per_pair"]
        lines.append(f"  for the suite         --trials {answer['trials']}")
        if per_pair is not None:
            lines.append(f"  for a pair by itself  --trials {per_pair}")
        estimate = answer.get("estimate")
        if estimate is not None:
            lines += _indented(_estimate_words(estimate, answer, concurrency), width)
        lines += _indented(answer["note"], width)
    pilot = result["pilot"]
    if pilot is not None:
        lines += ["", *textwrap.wrap(_pilot_words(pilot), width)]
    return "\n".join(lines) + "\n"


def _indented(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width, initial_indent="  ", subsequent_indent="  ")


def _estimate_words(
    estimate: Mapping[str, JSON], answer: Mapping[str, JSON], concurrency: int
) -> str:
    seconds = estimate["case_seconds"] / concurrency
    time = f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
    if seconds >= 7200:
        time = f"{seconds / 3600:.1f} h"
    tokens = "unknown" if estimate["tokens"] is None else f"{estimate['tokens']:,.0f}"
    cost = "unknown" if estimate["cost_usd"] is None else f"${estimate['cost_usd']:,.2f}"
    what = f"{answer['trials']} trials" + (" of both" if answer["agents"] == 2 else "")
    return f"{what} take about {time} at concurrency {concurrency}, {tokens} tokens, cost {cost}"


def _pilot_words(pilot: Mapping[str, JSON]) -> str:
    priced = pilot["priced_cases"]
    return (
        f"Time, tokens and cost are the means of {pilot['cases']} cases of the pilot "
        f"({priced} with a known price), scaled up."
    )
