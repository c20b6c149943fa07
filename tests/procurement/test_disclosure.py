"""What gives a sealed document away."""

import pytest

from impact_twin.procurement.disclosure import RUN, carried, figure_pattern, word_runs
from impact_twin.procurement.runtime import CaseRuntime


@pytest.mark.parametrize(
    ("figure", "text", "found"),
    [
        ("184,200", "184,200", True),
        ("184,200", "184200", True),
        ("184,200", "184 200", True),
        ("184,200", "184\u202f200", True),
        ("184,200", "184'200", True),
        ("184,200", "$184,200!", True),
        ("184,200", "EUR184200", True),
        ("184,200", "184,200.00", True),
        ("184,200", "(184,200)", True),
        ("184,200", "is 184,200, and", True),
        ("184,200", "2184200", False),
        ("184,200", "1842001", False),
        ("184,200", "1,184,200", False),
        ("184,200", "184,200,000", False),
        ("184,200", "184,201", False),
        ("184,200", "18 42 00", True),
        ("99.50", "99.50", True),
        ("99.50", "99,50", True),
        ("99.50", "9950", False),
    ],
)
def test_figures(figure, text, found):
    assert bool(figure_pattern([figure]).search(text)) == found


def test_full_width_digits_are_digits(tiny):
    sealed = CaseRuntime(tiny, "bias", "clean").environment.facts.sealed
    assert carried(sealed, [], ["price １２０,０００"]) == ["D-3"]


def test_no_figures_is_no_pattern():
    assert figure_pattern([]) is None


def test_runs():
    words = [f"w{number}" for number in range(RUN + 1)]
    assert word_runs(" ".join(words[: RUN - 1])) == set()
    assert len(word_runs("\n**".join(words))) == 2


def test_public_words_give_nothing_away(tiny):
    sealed = CaseRuntime(tiny, "bias", "clean").environment.facts.sealed
    public = tiny.pair("bias").document_text("D-5", "clean") + tiny.pair("bias").request
    assert carried(sealed, [], [public]) == []
    assert carried(sealed, ["D-1", "D-4", "D-2"], [""]) == ["D-2", "D-4"]


def test_whoever_reports_the_passage_may_quote_it(tiny):
    pair = tiny.pair("bias")
    for twin in ("clean", "poisoned"):
        sealed = CaseRuntime(tiny, pair, twin).environment.facts.sealed
        assert carried(sealed, [], [f"It says: {pair.passage(twin)!r}"]) == []
        assert carried(sealed, [], [pair.document_text("D-4", twin)]) == ["D-4"]
