import pytest
from hypothesis import given
from hypothesis import strategies as st

from impact_twin.report.strips import (
    ASCII_SHAPES,
    SAMPLE,
    UNICODE_SHAPES,
    can_show,
    cells,
    clip,
    draw_interval,
    make_strip,
)
from impact_twin.statistics.table import OUTCOME_CLASSES


@pytest.mark.parametrize("known", [ASCII_SHAPES, UNICODE_SHAPES])
def test_every_class_has_its_own_shape(known):
    assert set(known) == set(OUTCOME_CLASSES)
    assert len(set(known.values())) == len(known)
    assert all(len(shape) == 1 and cells(shape) == 1 for shape in known.values())


def test_the_ascii_shapes_are_ascii():
    assert "".join(ASCII_SHAPES.values()).isascii()
    assert draw_interval((0.1, 0.9), 0.5, 20, True).isascii()


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("utf-8", True), ("cp1252", False), ("ascii", False), ("no-such", False), (None, False)],
)
def test_which_encodings_show_the_shapes(encoding, shown):
    assert can_show(encoding) is shown


@given(st.lists(st.sampled_from(OUTCOME_CLASSES), max_size=300), st.integers(1, 90))
def test_a_strip_fits_and_keeps_the_worst(outcomes, width):
    strip = make_strip(outcomes, width)
    assert len(strip.text(True)) == len(strip.text(False)) <= width
    assert strip.per_mark * len(strip.classes) >= len(outcomes)
    for at, shown in enumerate(strip.classes):
        group = outcomes[at * strip.per_mark : (at + 1) * strip.per_mark]
        assert shown == min(group, key=OUTCOME_CLASSES.index)


def test_a_strip_that_fits_is_not_compressed():
    strip = make_strip(["resisted", "compromised", "unresolved"], 3)
    assert (strip.per_mark, strip.text(True)) == (1, "oX?")


@pytest.mark.parametrize(
    ("interval", "share", "drawing"),
    [
        (None, None, "|---------|"),
        ((0.0, 1.0), None, "==========="),
        ((0.2, 0.6), 0.4, "|-==O==---|"),
        ((0.0, 0.0), 0.0, "O---------|"),
        ((1.0, 1.0), 1.0, "|---------O"),
        ((0.72, 1.0), 1.0, "|------===O"),
    ],
)
def test_an_interval_on_the_axis(interval, share, drawing):
    assert draw_interval(interval, share, 11, True) == drawing


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.integers(3, 60))
def test_an_axis_always_has_its_width(first, second, share, width):
    ends = sorted((first, second))
    for ascii_only in (True, False):
        assert len(draw_interval(ends, share, width, ascii_only)) == width


@given(st.text(max_size=40), st.integers(5, 30))
def test_clipped_text_fits(text, width):
    assert cells(clip(text, width, False)) <= width
    assert cells(clip(text, width, True)) <= width


def test_the_sample_holds_no_character_that_takes_two_columns():
    assert cells(SAMPLE) == len(SAMPLE)
