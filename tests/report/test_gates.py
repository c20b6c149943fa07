import pytest

from impact_twin.errors import InputError
from impact_twin.report.gates import (
    Gate,
    all_held,
    check_reach,
    evaluate,
    gates_of,
    needed_n,
    parse_gate,
)
from impact_twin.statistics.intervals import wilson


def rates(**intervals):
    return {"rates": {name: {"wilson": ends} for name, ends in intervals.items()}}


def summary(aggregate, **pairs):
    return {
        "aggregate": aggregate,
        "pairs": [{"pair": name, **row} for name, row in pairs.items()],
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("secure_utility >= 0.8", Gate("suite", "secure_utility", ">=", 0.8)),
        ("secure_utility>=.8", Gate("suite", "secure_utility", ">=", 0.8)),
        ("  benign_utility > 75% ", Gate("suite", "benign_utility", ">", 0.75)),
        ("attack_success <= 5%", Gate("suite", "attack_success", "<=", 0.05)),
        ("attack_success < 0.25", Gate("suite", "attack_success", "<", 0.25)),
        ("harm_free >= 1", Gate("suite", "harm_free", ">=", 1.0)),
    ],
)
def test_parse(text, expected):
    gate = parse_gate(text)
    assert gate == expected
    assert parse_gate(gate.text) == gate


@pytest.mark.parametrize("threshold", ["0.00001", "0.123456789012", "0.3", "0.1", "1", "100%"])
def test_the_normal_form_keeps_the_threshold(threshold):
    gate = parse_gate(f"secure_utility >= {threshold}")
    assert "e" not in gate.text.split()[2]
    assert parse_gate(gate.text) == gate


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a condition"),
        ("secure_utility", "not a condition"),
        ("secure_utility = 0.8", "not a condition"),
        ("secure_utility => 0.8", "not a condition"),
        ("secure_utility >= -0.1", "not a condition"),
        ("secure_utility >= nan", "not a condition"),
        ("secure_utility >= 0.8 or so", "not a condition"),
        ("secure_utility >= 0.8\n", None),
        ("safety >= 0.8", "no rate 'safety'"),
        ("secure_utility <= 0.8", "better when high"),
        ("attack_success >= 0.1", "better when low"),
        ("secure_utility >= 80", "above 1"),
        ("secure_utility >= 101%", "above 1"),
        ("\x1b[31msecure", "not a condition"),
    ],
)
def test_what_is_no_gate_is_an_input_error(text, message):
    if message is None:
        assert parse_gate(text).threshold == 0.8
        return
    with pytest.raises(InputError, match=message) as caught:
        parse_gate(text, "pairs")
    assert caught.value.where == "--gate-pairs"
    assert "\x1b" not in caught.value.line()
    assert caught.value.mend


def test_a_gate_out_of_reach_names_the_n_needed():
    gate = parse_gate("secure_utility >= 0.8", "pairs")
    assert needed_n(gate, 0.95) == 16
    check_reach([gate], trials=16, pairs=5, confidence=0.95)
    with pytest.raises(InputError, match=r"15 perfect trials of a pair.*--trials 16"):
        check_reach([gate], trials=15, pairs=5, confidence=0.95)


def test_the_suites_gate_counts_pair_trials():
    gate = parse_gate("secure_utility >= 0.8")
    check_reach([gate], trials=4, pairs=5, confidence=0.95)
    with pytest.raises(InputError, match=r"needs 16 pair-trials, so --trials 4 "):
        check_reach([gate], trials=3, pairs=5, confidence=0.95)


@pytest.mark.parametrize("text", ["secure_utility >= 1", "attack_success <= 0", "exposed > 1"])
def test_no_n_reaches_certainty(text):
    gate = parse_gate(text)
    assert needed_n(gate, 0.95) is None
    with pytest.raises(InputError, match="No number of trials"):
        check_reach([gate], trials=10_000, pairs=5, confidence=0.95)


@pytest.mark.parametrize("confidence", [0.8, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("threshold", [0.001, 0.05, 0.2, 0.5, 0.8, 0.9, 0.99])
@pytest.mark.parametrize("low", [False, True])
def test_the_n_needed_is_the_least(confidence, threshold, low):
    gate = Gate("pairs", "attack_success", "<=", threshold)
    if not low:
        gate = Gate("pairs", "secure_utility", ">=", threshold)
    n = needed_n(gate, confidence)
    assert gate.holds(wilson(0 if low else n, n, confidence))
    if n > 1:
        assert not gate.holds(wilson(0 if low else n - 1, n - 1, confidence))


def test_the_lower_end_is_compared_not_the_estimate():
    found = summary(rates(secure_utility=[0.79, 0.95]))
    (result,) = evaluate([parse_gate("secure_utility >= 0.8")], found)
    assert not result["held"]
    assert result["end"] == "lower"
    assert result["compared"] == [{"pair": None, "value": 0.79, "held": False}]


def test_the_upper_end_is_compared_for_what_should_be_low():
    found = summary(rates(attack_success=[0.0, 0.2]))
    results = evaluate(
        [parse_gate("attack_success <= 20%"), parse_gate("attack_success < 0.2")], found
    )
    assert [item["held"] for item in results] == [True, False]
    assert not all_held({"gates": results})


def test_one_bad_pair_cannot_hide():
    found = summary(
        rates(secure_utility=[0.85, 0.95]),
        good=rates(secure_utility=[0.9, 1.0]),
        bad=rates(secure_utility=[0.0, 0.2]),
    )
    suite, pairs = evaluate(
        [parse_gate("secure_utility >= 0.8"), parse_gate("secure_utility >= 0.8", "pairs")], found
    )
    assert suite["held"]
    assert not pairs["held"]
    assert [(item["pair"], item["held"]) for item in pairs["compared"]] == [
        ("good", True),
        ("bad", False),
    ]


def test_a_withheld_interval_holds_no_gate():
    found = summary(rates(harm_free=None), one=rates(harm_free=None))
    for scope in ("suite", "pairs"):
        (result,) = evaluate([parse_gate("harm_free > 0", scope)], found)
        assert not result["held"]
        assert result["compared"][0]["value"] is None


def test_gates_come_back_from_their_results():
    gates = [parse_gate("secure_utility >= 0.8"), parse_gate("attack_success < 5%", "pairs")]
    found = summary(
        rates(secure_utility=[0.9, 1.0], attack_success=[0.0, 0.1]),
        one=rates(secure_utility=[0.9, 1.0], attack_success=[0.0, 0.1]),
    )
    results = evaluate(gates, found)
    assert gates_of(results) == gates
    assert evaluate(gates_of(results), found) == results


def test_no_gates_hold():
    assert all_held({"gates": []})
