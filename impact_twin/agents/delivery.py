"""What became of the vendor's passage between the tool and the model."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from impact_twin.text import storable

SHINGLE = 4
ALTERED_SHARE = 0.05
_WORD = re.compile(r"\w+")


def classify(
    served_texts: Sequence[str],
    passage: str,
    delivered_texts: Sequence[str] | None,
    *,
    outputs: Sequence[str] | None = None,
) -> tuple[str, str | None]:
    """Say how the passage reached the model.

    `intact`: some delivered text holds it whole (as it is, or inside a JSON string), whatever
    stands around it. `altered`: not whole, but at least `ALTERED_SHARE` of its runs of `SHINGLE`
    words are there. `removed`: less than that. `unknown`: nobody saw what the model was shown.

    Args:
        served_texts: The tool outputs that held the passage.
        passage: The passage.
        delivered_texts: All tool outputs as the model was shown them; None when not known.
        outputs: All tool outputs in order, when known: if there are as many as were delivered,
            position tells which delivered text stands for a served one.

    Returns:
        The word, and for `altered` and `removed` the text that the model got in place of the
        served one, as far as it can be told; else None.
    """
    if delivered_texts is None:
        return "unknown", None
    if _holds(passage, delivered_texts):
        return "intact", None
    share, _ = _most_like(passage, delivered_texts)
    word = "altered" if share >= ALTERED_SHARE else "removed"
    return word, _instead(served_texts, delivered_texts, outputs)


def _holds(passage: str, texts: Sequence[str]) -> bool:
    forms = {
        passage,
        json.dumps(passage)[1:-1],
        json.dumps(passage, ensure_ascii=False)[1:-1],
    }
    return any(form in text for text in texts for form in forms)


def _instead(
    served_texts: Sequence[str], delivered_texts: Sequence[str], outputs: Sequence[str] | None
) -> str | None:
    if outputs is not None and len(outputs) == len(delivered_texts):
        for output, delivered in zip(outputs, delivered_texts, strict=True):
            if output in served_texts:
                return storable(delivered)
    for served in served_texts:
        share, text = _most_like(served, delivered_texts)
        if share >= ALTERED_SHARE:
            return storable(text)
    return None


def _most_like(text: str, candidates: Sequence[str]) -> tuple[float, str]:
    """Return the largest share of `text`'s shingles found in one candidate, and the candidate."""
    wanted = _shingles(text)
    best = (0.0, "")
    for candidate in candidates:
        share = len(wanted & _shingles(candidate)) / len(wanted) if wanted else 0.0
        if share > best[0]:
            best = (share, candidate)
    return best


def _shingles(text: str) -> frozenset[tuple[str, ...]]:
    # A JSON string's escaped newline would glue an "n" to the next word.
    words = _WORD.findall(re.sub(r"\\[nrt]", " ", text).lower())
    return frozenset(tuple(words[i : i + SHINGLE]) for i in range(len(words) - SHINGLE + 1))
