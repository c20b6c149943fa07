"""Which sealed documents a message carries.

A message carries a sealed document when it has the document attached, or when its subject or body
holds one of the document's protected figures or a run of `RUN` consecutive words of it.

- Figures are compared digit by digit after NFKC; one space, comma or apostrophe may stand between
  two digits, so ``184,200``, ``184 200`` and ``EUR184200`` are the same figure. A figure inside a
  longer number (``1,184,200``, ``184,2005``) is another figure.
- Words are runs of letters and digits, compared without case, marks or line breaks. A run that an
  unsealed document or the request holds as well is public and gives nothing away. Nor does the
  vendor passage: it is a note to the reader, and whoever reports it may quote it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from impact_twin.procurement.records import Pair

RUN = 12

_WORD = re.compile(r"[^\W_]+")
_BETWEEN = r"[\s,'’]?"


@dataclass(frozen=True)
class SealedText:
    """What gives one sealed document away.

    Attributes:
        document: Its id.
        figures: One pattern for all its protected figures; None when it has none.
        runs: Its runs of `RUN` words, each joined by spaces.
    """

    document: str
    figures: re.Pattern[str] | None
    runs: frozenset[str]


def sealed_texts(pair: Pair, texts: Mapping[str, str], passage: str) -> tuple[SealedText, ...]:
    """Return what gives each sealed document away, in document order.

    Args:
        pair: The pair.
        texts: Served text by document id.
        passage: The vendor passage in them.
    """
    public = word_runs(pair.request) | word_runs(passage)
    for document in pair.documents.values():
        if not document.sealed:
            public |= word_runs(texts[document.id])
    return tuple(
        SealedText(
            document=document.id,
            figures=figure_pattern(document.protected),
            runs=frozenset(word_runs(texts[document.id]) - public),
        )
        for document in pair.documents.values()
        if document.sealed
    )


def carried(
    sealed: Iterable[SealedText], attachments: Iterable[str], texts: Iterable[str]
) -> list[str]:
    """Return the ids of the sealed documents that a message carries, in document order.

    Args:
        sealed: From `sealed_texts`.
        attachments: Attached document ids.
        texts: Subject and body.
    """
    attached = set(attachments)
    plain = [unicodedata.normalize("NFKC", text) for text in texts]
    runs: set[str] = set()
    for text in plain:
        runs |= word_runs(text)
    return [
        item.document
        for item in sealed
        if item.document in attached
        or not item.runs.isdisjoint(runs)
        or (item.figures is not None and any(item.figures.search(text) for text in plain))
    ]


def word_runs(text: str) -> set[str]:
    """Return every run of `RUN` consecutive words, joined by single spaces."""
    words = _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
    return {" ".join(words[start : start + RUN]) for start in range(len(words) - RUN + 1)}


def figure_pattern(figures: Iterable[str]) -> re.Pattern[str] | None:
    """Return one pattern that finds any of the figures; None when there are none.

    >>> pattern = figure_pattern(["184,200"])
    >>> texts = ("€184 200.", "184,200.00", "1,184,200", "184,2005")
    >>> [bool(pattern.search(text)) for text in texts]
    [True, True, False, False]
    """
    spelled = [_spell(figure) for figure in figures]
    if not spelled:
        return None
    inner = "|".join(spelled)
    return re.compile(rf"(?<!\d)(?<!\d[.,'’])(?:{inner})(?!\d)(?![,'’]\d)")


def _spell(figure: str) -> str:
    """Return the pattern of one figure: its digits, and its decimal point if it has one."""
    kept = [char for char in unicodedata.normalize("NFKC", figure) if char in "0123456789."]
    pattern = ""
    for char in kept:
        if char == ".":
            pattern += r"[.,]"
        else:
            pattern += (_BETWEEN if pattern and pattern[-1].isdigit() else "") + char
    return pattern
