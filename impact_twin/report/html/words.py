"""Words, figures and untrusted text on their way into a page."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence

from impact_twin.procurement.model import JSON
from impact_twin.statistics.table import OUTCOME_CLASSES
from impact_twin.text import escape

NAME = 200
"""Characters of a name or a line that are shown."""

TEXT = 4_000
"""Characters of a longer text that are shown."""

LISTED = 20
"""Items of a list that are shown."""

WITHHELD = "withheld"

_SINGLE = re.compile(r"[\ufff9-\ufffb]|\r\n|[\r\u0085\u2028\u2029]")


def clip(text: str, limit: int) -> str:
    """Shorten text to a number of characters, saying how many are left out.

    >>> clip("abcdef", 4)
    'abcd… (2 more characters)'
    """
    left = len(text) - limit
    return text if left <= 0 else f"{text[:limit]}… ({left:,} more characters)"


def line(text: str, limit: int = NAME) -> str:
    r"""Untrusted text on one line: clipped, every unsafe character escaped, safe in HTML.

    >>> line("<b>\x1b[1m")
    '&lt;b&gt;\\x1b[1m'
    """
    return html.escape(escape(clip(text, limit)))


def name(text: str, limit: int = NAME) -> str:
    """`line`, isolated so that right-to-left text can't reorder what stands around it."""
    return f"<bdi>{line(text, limit)}</bdi>"


def block(text: str, limit: int = TEXT) -> str:
    """Untrusted text with its line breaks, in a box of its own."""
    broken = _SINGLE.sub(lambda found: "\n" if found[0] == "\r\n" else found[0], clip(text, limit))
    shown = html.escape(escape(broken, keep="\n\t"))
    # HTML drops one newline at the start of a pre.
    return f'<pre dir="auto" tabindex="0">\n{shown}</pre>'


def value(found: JSON, limit: int = NAME) -> str:
    """Any JSON on one line."""
    text = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
    return name(text, limit)


def names(found: Iterable[str]) -> str:
    """A list of untrusted names, at most `LISTED` of them."""
    items = list(found)
    words = [name(item, 80) for item in items[:LISTED]]
    if len(items) > LISTED:
        words.append(f"and {len(items) - LISTED:,} more")
    return ", ".join(words) if words else "none"


def count(number: int, what: str) -> str:
    """A number with its noun.

    >>> count(1, "case"), count(2000, "case")
    ('1 case', '2,000 cases')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def percent(share: float) -> str:
    """A share in per cent with one decimal."""
    return f"{100 * share:.1f} %"


def estimate(rate: Mapping[str, JSON]) -> str:
    """A rate, or the range that it may have when cases are unresolved."""
    if rate["bounds"] is None or rate["rate"] is None:
        return "none"
    if rate["unresolved"]:
        lo, hi = (round(100 * end) for end in rate["bounds"])
        return f"{lo} to {hi} %"
    return percent(rate["rate"])


def ends(interval: Sequence[float] | None) -> str:
    """An interval in per cent."""
    if interval is None:
        return WITHHELD
    return f"{100 * interval[0]:.1f} to {100 * interval[1]:.1f} %"


def decimals(number: float | None) -> str:
    """A number with three decimals.

    >>> decimals(0.25), decimals(None)
    ('0.250', 'none')
    """
    return "none" if number is None else f"{number:.3f}"


def class_words(classes: Mapping[str, int]) -> str:
    """The classes that occurred, the most frequent first."""
    found = [(number, key) for key, number in classes.items() if number]
    found.sort(key=lambda item: (-item[0], OUTCOME_CLASSES.index(item[1])))
    return ", ".join(f"{number:,} {key}" for number, key in found) or "none"


def runs(outcomes: Sequence[str]) -> list[tuple[int, int, str]]:
    """Runs of one class in a row: first trial, last trial, class.

    >>> runs(["a", "a", "b"])
    [(1, 2, 'a'), (3, 3, 'b')]
    """
    found: list[tuple[int, int, str]] = []
    for trial, outcome in enumerate(outcomes, 1):
        if found and found[-1][2] == outcome:
            found[-1] = (found[-1][0], trial, outcome)
        else:
            found.append((trial, trial, outcome))
    return found
