"""Importing RepeatTwin reports: figures made again, claims kept, hostile files refused."""

import copy
import gzip
import hashlib
import json
import random
from pathlib import Path

import pytest

from impact_twin.errors import CheckFailedError, ImpactTwinError, InputError
from impact_twin.proofrun.foreign import first_parting, import_report
from impact_twin.proofrun.foreign_compare import RATES, compare_foreign
from impact_twin.proofrun.foreign_figures import AGGREGATE_RATES, PAIR_RATES, counts_of, outcome_of
from impact_twin.proofrun.foreign_files import foreign_text, parse_foreign, take_foreign
from impact_twin.proofrun.foreign_inspection import (
    foreign_inspection_json,
    render_foreign_inspection,
)
from impact_twin.proofrun.foreign_text import render_foreign
from impact_twin.proofrun.reading import ReadLimits
from impact_twin.report.comparison_text import render_comparison
from impact_twin.report.strips import cells

DATA = Path(__file__).parent / "data" / "repeattwin"
SAMPLES = ("report", "bundle-1", "bundle-2")


def sample(name):
    return gzip.decompress((DATA / f"{name}.json.gz").read_bytes())


def encode(value):
    return json.dumps(value).encode()


@pytest.fixture(scope="module")
def stated():
    return json.loads(sample("report"))


@pytest.fixture
def theirs(stated):
    return copy.deepcopy(stated)


@pytest.fixture(scope="module")
def imported():
    return import_report(sample("report"))


@pytest.fixture
def ours(imported):
    return copy.deepcopy(imported)


@pytest.mark.parametrize("name", SAMPLES)
def test_every_stated_figure_is_made_again_to_1e_12(name):
    report = import_report(sample(name))
    content = json.loads(sample(name))
    content = content.get("report", content)
    pairs = {item["pair_id"]: item for item in content["pair_summaries"]}
    checked = 0
    places = [(content["summary"], report["summary"]["rates"], AGGREGATE_RATES)]
    places += [
        (pairs[item["pair"]], item["rates"], PAIR_RATES) for item in report["summary"]["pairs"]
    ]
    for stated, found, names in places:
        for rate in names:
            assert found[rate]["count"] == stated[rate]["successes"]
            assert found[rate]["n"] == stated[rate]["observations"]
            assert found[rate]["rate"] == pytest.approx(stated[rate]["rate"], abs=1e-12)
            assert found[rate]["wilson"][0] == pytest.approx(stated[rate]["lower"], abs=1e-12)
            assert found[rate]["wilson"][1] == pytest.approx(stated[rate]["upper"], abs=1e-12)
            checked += 1
    assert checked == len(AGGREGATE_RATES) + 5 * len(PAIR_RATES)
    assert report["summary"]["case_errors"] == content["summary"]["case_errors"] > 0


def test_claims_are_kept_as_they_are(stated, imported):
    rows = iter(imported["pair_trials"])
    for number, trial in enumerate(stated["trials"], 1):
        for pair in trial["pairs"]:
            row = next(rows)
            assert (row["trial"], row["pair"]) == (number, pair["pair_id"])
            assert row["attack_resisted"] is pair["attack_resisted"]
            for twin, key in (("clean", "clean"), ("poisoned", "injected")):
                case, claim = row[twin], pair[key]
                assert case["mission_completed"] is claim["mission_completed"]
                assert case["side_effects"] == claim["prohibited_side_effects"]
                assert case["error"] == claim["error"]
                trace = imported["traces"][case["trace"]]
                assert [event["tool"] for event in trace] == [
                    event["tool"] for event in claim["action_trace"]
                ]
    assert not [row for row in imported["pair_trials"] if row["doubts"]]
    assert "claim" in imported["statement"]


def test_a_bundle_gives_what_its_report_gives_and_its_envelope_as_claims():
    report, bundle = import_report(sample("report")), import_report(sample("bundle-1"))
    assert report["summary"] == bundle["summary"]
    assert report["origin"]["bundle"] is None
    claims = bundle["origin"]["bundle"]
    assert (claims["version"], claims["submitter"]) == (1, "@somebody")
    digest = hashlib.sha256(sample("bundle-1")).hexdigest()
    assert bundle["origin"]["file"] == f"sha256:{digest}"
    second = import_report(sample("bundle-2"))["origin"]["bundle"]
    assert second["provenance"]["provider"] == "local"


def test_an_error_leaves_open_what_no_harm_decided():
    def row(*, resisted=False, error=None, harms=()):
        case = {"error": None, "mission_completed": True, "side_effects": []}
        poisoned = {**case, "error": error, "side_effects": list(harms)}
        return {"attack_resisted": resisted, "clean": case, "poisoned": poisoned}

    rows = [row(resisted=True), row(error="x"), row(error="x", harms=["disclosed"]), row()]
    found = counts_of("attack_resistance", rows)
    assert (found.count, found.known, found.errors, found.n) == (1, 1, 1, 4)
    found = counts_of("harm_free", rows)
    assert (found.count, found.known, found.errors, found.n) == (3, 2, 1, 4)


FIGURES = [
    ("summary", "attack_resistance", "lower"),
    ("summary", "attack_resistance", "successes"),
    ("summary", "harm_free", "upper"),
    ("summary", "trace_equivalence", "rate"),
    ("summary", "unstable_pairs"),
    ("summary", "case_errors"),
    ("summary", "trials"),
    ("summary", "usage", "reported_cases"),
    ("pair_summaries", 3, "decision_invariance", "upper"),
    ("pair_summaries", 0, "distinct_outcomes"),
    ("pair_summaries", 0, "error_runs"),
    ("pair_summaries", 1, "outcome_counts", "resisted"),
]


@pytest.mark.parametrize("path", FIGURES, ids=lambda path: ".".join(map(str, path)))
def test_a_figure_that_does_not_follow_from_the_trials_is_named(theirs, path):
    part = theirs
    for key in path[:-1]:
        part = part[key]
    change = 3e-12 if isinstance(part[path[-1]], float) else 3
    part[path[-1]] += change
    with pytest.raises(CheckFailedError) as caught:
        import_report(encode(theirs), where="x.json")
    named = str(path[-1]) if path[-1] != "resisted" else "outcome_counts"
    assert named in caught.value.line()
    assert caught.value.exit_code == 1


def test_a_figure_within_the_tolerance_is_taken(theirs):
    theirs["summary"]["harm_free"]["upper"] += 5e-13
    assert import_report(encode(theirs))["kind"].startswith("impact-twin/")


def test_a_flipped_outcome_breaks_the_figures(theirs):
    pair = theirs["trials"][0]["pairs"][0]
    pair["attack_resisted"] = not pair["attack_resisted"]
    with pytest.raises(CheckFailedError, match="attack_resistance"):
        import_report(encode(theirs))


def test_claims_that_contradict_each_other_are_pointed_out(theirs):
    # Two pair-trials swap their claims, so that every figure still holds.
    first, second = (
        next(
            trial["pairs"][0]
            for trial in theirs["trials"]
            if trial["pairs"][0]["attack_resisted"] is wanted
        )
        for wanted in (True, False)
    )
    for key in ("attack_resisted", "causal_evidence"):
        first[key], second[key] = second[key], first[key]
    for pair in (first, second):
        pair["causal_evidence"] = dict(pair["causal_evidence"])
    # The label of a failure names the side effects of its own case, so they move as well.
    effects = first["injected"]["prohibited_side_effects"]
    first["injected"]["prohibited_side_effects"] = second["injected"]["prohibited_side_effects"]
    second["injected"]["prohibited_side_effects"] = effects
    report = import_report(encode(theirs))
    doubted = [row for row in report["pair_trials"] if row["doubts"]]
    assert len(doubted) == 2
    assert any("contradicts the cases" in note for note in report["notes"])
    assert "contradicted" in render_foreign_inspection(
        report, pair=doubted[0]["pair"], trial=doubted[0]["trial"]
    )


@pytest.mark.parametrize("key", ["bundle_sha256", "report_sha256"])
@pytest.mark.parametrize("name", ["bundle-1", "bundle-2"])
def test_a_wrong_digest_is_named(name, key):
    bundle = json.loads(sample(name))
    bundle[key] = "0" * 64
    with pytest.raises(CheckFailedError, match="sha256"):
        import_report(encode(bundle))


def test_a_changed_envelope_breaks_its_digest():
    bundle = json.loads(sample("bundle-1"))
    bundle["submission"]["submitter"] = "@thief"
    with pytest.raises(CheckFailedError, match="bundle_sha256"):
        import_report(encode(bundle))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b"\xff\xfe{}",
        b'{"kind": "impact-twin/report"}',
        b'{"report_type": "RepeatTwin / ProcureBench", "schema_version": 2}',
        b'{"bundle_type": "dspy-security-bench-community-submission"}',
        b'{"bundle_type": 1, "bundle_type": 1}',
        b'{"report_type": NaN}',
        b"[" * 5000,
        sample("report")[:-100],
    ],
)
def test_what_is_no_such_file_is_an_input_error(data):
    with pytest.raises(InputError) as caught:
        import_report(data, where="x.json")
    assert "x.json" in caught.value.line()


def test_a_large_file_is_refused_before_it_is_parsed():
    with pytest.raises(InputError, match="larger than"):
        import_report(sample("report"), limits=ReadLimits(max_bytes=1000))


STRANGE = (None, True, 0, -1, 2**60, 1e300, "", "x\x1b\u202e", [], {}, [[]], {"a": 1}, 1.5)


def places(value, path=()):
    """Every place in a JSON value."""
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list):
            yield from places(item, (*path, key))
        else:
            yield (*path, key)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("source", ["report", "bundle-2", "imported"])
def test_mutated_files_raise_nothing_but_our_errors(seed, source, imported):
    """Replaced, dropped and repeated values at every kind of place; what loads can be shown."""
    whole = imported if source == "imported" else json.loads(sample(source))
    read = parse_foreign if source == "imported" else import_report
    rng = random.Random(seed)
    every = list(places(whole))
    # Places near the top are few, and decide the most.
    top = [path for path in every if len(path) <= 3]
    for _ in range(25):
        value = copy.deepcopy(whole)
        path = rng.choice(rng.choice((every, top)))
        part = value
        for key in path[:-1]:
            part = part[key]
        kind = rng.randrange(3)
        if kind == 0:
            part[path[-1]] = rng.choice(STRANGE)
        elif kind == 1:
            del part[path[-1]]
        elif isinstance(part, list):
            part.append(copy.deepcopy(part[path[-1]]))
        else:
            part["more"] = copy.deepcopy(part[path[-1]])
        try:
            report = read(encode(value))
        except ImpactTwinError:
            continue
        for text in (render_foreign(report), render_foreign_inspection(report)):
            assert "\x1b" not in text
            assert "\u202e" not in text


def test_a_foreign_report_survives_writing_and_reading(imported, tmp_path):
    path = tmp_path / "f.json"
    path.write_text(foreign_text(imported))
    assert take_foreign(str(path)) == (imported, None)
    with path.open("rb") as stream:
        assert take_foreign("-", stream) == (imported, None)


def test_other_files_are_left_to_others(tmp_path):
    path = tmp_path / "r.json"
    path.write_text('{"kind":"impact-twin/report"}')
    assert take_foreign(str(path)) == (None, None)
    assert take_foreign(str(tmp_path)) == (None, None)
    assert take_foreign(str(tmp_path / "none")) == (None, None)
    with path.open("rb") as stream:
        found, rest = take_foreign("-", stream)
    assert found is None
    assert rest.read() == path.read_bytes()


def change_rate(report):
    report["summary"]["rates"]["harm_free"]["wilson"][0] += 1e-12


def change_outcome(report):
    report["pair_trials"][0]["attack_resisted"] = not report["pair_trials"][0]["attack_resisted"]


def change_trace(report):
    next(iter(report["traces"].values()))[0]["tool"] = "other"


def change_statement(report):
    report["statement"] = "All verified."


def drop_notes(report):
    report["notes"] = []


def drop_trial(report):
    del report["pair_trials"][-5:]


def many_trials(report):
    report["trials"] = 2**50


def newer(report):
    report["schema_version"] = 2


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (change_rate, "summary does not follow"),
        (change_outcome, "summary does not follow"),
        (change_trace, "is not what its digest"),
        (change_statement, "statement"),
        (drop_notes, "notes"),
        (drop_trial, "pair_trials are not"),
        (many_trials, "pair_trials are not"),
        (newer, "newer"),
    ],
)
def test_a_changed_foreign_report_is_refused(ours, change, problem):
    change(ours)
    with pytest.raises(InputError) as caught:
        parse_foreign(encode(ours), where="f.json")
    assert problem in caught.value.line()


def test_the_schema_is_a_valid_one_and_holds(imported):
    jsonschema = pytest.importorskip("jsonschema")
    from impact_twin.resources import data_folder

    path = data_folder("schemas") / "1" / "foreign-report.schema.json"
    schema = json.loads(path.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(foreign_text(imported)))


@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("plain", [True, False])
def test_text_keeps_to_its_width(imported, width, plain):
    name = imported["pairs"][1]["pair"]
    for text in (
        render_foreign(imported, width=width, ascii=plain),
        render_foreign_inspection(imported, width=width, ascii=plain),
        render_foreign_inspection(imported, pair=name, width=width, ascii=plain),
        render_foreign_inspection(imported, pair=name, trial=2, width=width, ascii=plain),
    ):
        assert max(cells(line) for line in text.splitlines()) <= width
        assert not plain or text.isascii()


def test_the_report_says_whose_claims_they_are(imported):
    text = render_foreign(imported)
    for word in ("dspy-security-bench", "imported", "claim", "never", "14/25", "37.1-73.3"):
        assert word in text


def test_inspection_shows_variable_pairs_first_and_where_two_trials_part(imported):
    order = [
        line.split(":")[0]
        for line in render_foreign_inspection(imported).splitlines()
        if line.startswith("procure-")
    ]
    disagreement = {item["pair"]: item["disagreement"] for item in imported["summary"]["pairs"]}
    assert [disagreement[name] for name in order] == sorted(disagreement.values(), reverse=True)
    name = "procure-source-selection-exfiltration"
    rows = [row for row in imported["pair_trials"] if row["pair"] == name]
    one = next(row for row in rows if outcome_of(row) == "resisted")
    other = next(row for row in rows if row["poisoned"]["side_effects"])
    text = render_foreign_inspection(imported, pair=name, trials=(one["trial"], other["trial"]))
    place = first_parting(*(imported["traces"][row["poisoned"]["trace"]] for row in (one, other)))
    assert f"part at call {place + 1}" in text
    assert "release_source_selection" in text


def test_inspection_as_json_holds_all_trials_and_traces(imported):
    found = json.loads(json.dumps(foreign_inspection_json(imported)))
    rows = [row for pair in found["pairs"] for row in pair["pair_trials"]]
    assert len(rows) == imported["summary"]["n"]
    for pair in found["pairs"]:
        trials = [trial for cluster in pair["clusters"] for trial in cluster["trials"]]
        assert sorted(trials) == list(range(1, imported["trials"] + 1))
        for row in pair["pair_trials"]:
            assert row["poisoned"]["trace"] in pair["traces"]


@pytest.mark.parametrize(
    "asked", [{"pair": "no\x1bne"}, {"trial": 1}, {"pair": "procure-decision-bias", "trial": 9}]
)
def test_inspection_of_what_is_not_there_is_an_input_error(imported, asked):
    with pytest.raises(InputError) as caught:
        render_foreign_inspection(imported, **asked)
    assert "\x1b" not in caught.value.line()


def test_foreign_reports_compare_among_themselves(imported):
    other = import_report(sample("bundle-2"))
    result = compare_foreign([("a", imported), ("b", other)])
    (comparison,) = result["comparisons"]
    assert [rate["rate"] for rate in comparison["rates"]] == list(RATES)
    rate = comparison["rates"][0]
    open_cases = imported["summary"]["rates"]["attack_resistance"]["errors"]
    assert (rate["a"]["n"], rate["b"]["n"]) == (25, 10)
    assert rate["a"]["unresolved"] == open_cases > 0
    assert "attack resistance" in render_comparison(result)
    assert result["notes"][0] == imported["statement"]


def test_a_foreign_report_does_not_compare_with_ours_or_another_protocol(ours, imported):
    with pytest.raises(InputError, match="report of impact-twin"):
        compare_foreign([("a", imported), ("b", None)])
    ours["identity"]["protocol"] = "0" * 64
    with pytest.raises(InputError, match="not comparable"):
        compare_foreign([("a", imported), ("b", ours)])
    with pytest.raises(InputError, match="two reports"):
        compare_foreign([("a", imported)])
    with pytest.raises(InputError, match="no confidence"):
        compare_foreign([("a", imported), ("b", imported)], 1.0)


def test_no_board_takes_a_foreign_report(imported, verifier):
    from impact_twin.proofrun.board import make_board
    from impact_twin.proofrun.board_entry import make_entry

    entries = [
        make_entry(name, data, verifier)
        for name, data in (("f", foreign_text(imported).encode()), ("b", sample("bundle-1")))
    ]
    board = make_board(entries)
    assert board.boards == ()
    assert len(board.refused) == 2


def test_samples_made_now_import_as_well(tmp_path, monkeypatch):
    """The package itself, when it is installed (an extra test dependency)."""
    pytest.importorskip("dspy_security_bench", reason="dspy-security-bench is not installed")
    import platform
    import sys

    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setattr(platform, "platform", platform.platform)
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    import foreign_samples

    foreign_samples.make(tmp_path)
    for name in SAMPLES:
        fresh = import_report((tmp_path / f"{name}.json").read_bytes())
        assert fresh["identity"]["agent"] == "wavering"
    assert import_report((tmp_path / "report.json").read_bytes())["trials"] == 5
