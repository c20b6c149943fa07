import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from impact_twin.text import escape, storable


@given(st.text(st.characters()))
def test_nothing_unsafe_survives_escape(text):
    shown = escape(text)
    assert not {unicodedata.category(char) for char in shown} & {
        "Cc",
        "Cf",
        "Cs",
        "Co",
        "Cn",
        "Zl",
        "Zp",
    }


def test_escape_spells_what_it_hides_and_keeps_what_it_is_told():
    assert escape("a\nb", keep="\n") == "a\nb"
    assert escape("\x07\u2028\U000e0041") == "\\x07\\u2028\\U000e0041"
    assert escape("Grüße, 北京") == "Grüße, 北京"


@given(st.text(st.characters() | st.sampled_from("\ud800\udfff")))
def test_storable_text_is_always_utf8(text):
    kept = storable(text)
    kept.encode("utf-8")
    assert len(kept) == len(text)
