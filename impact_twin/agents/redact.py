"""Secrets, taken out of everything before it is written."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit, urlunsplit

from impact_twin.procurement.model import JSON
from impact_twin.text import escape, storable

MARK = "[redacted]"
MAX_LINE = 400
MIN_SECRET = 8

_SECRET_NAME = re.compile(
    r"(?i)(?:^|[_\-.\s])(?:api[_\-]?key|apikey|key|token|secret|passw(?:or)?d|pwd|credentials?|"
    r"auth|authorization|bearer|cookie|signature|sig)s?$"
)
_SECRET_FIELD = re.compile(
    r"""(?ix)
    (["']?\b(?:[a-z0-9_\-]*(?:api[_\-]?key|apikey|token|secret|passw(?:or)?d|pwd|credentials?)
       |authorization|x-goog-api-key|cookie)["']?\s*[:=]\s*)
    (?:(?:bearer|basic|token)\s+)?
    ("[^"\s]{6,}"|'[^'\s]{6,}'|[^\s"',;&)}\]]{6,})
    """
)
_USERINFO = re.compile(r"(?i)\b([a-z][a-z0-9+.\-]*://)[^/\s@?#\"']+@")
_QUERY = re.compile(
    r"(?i)([?&](?:[a-z0-9_\-]*(?:key|token|secret|passw(?:or)?d|sig|signature|code|auth))=)[^&\s#\"']+"
)
_SHAPES = re.compile(
    r"""(?x)
    \b(?:sk|pk|rk)[-_][A-Za-z0-9_\-]{12,}       # OpenAI, Anthropic, Stripe
    | \b(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{16,}
    | \bglpat-[A-Za-z0-9_\-]{12,}
    | \b(?:AKIA|ASIA)[A-Z0-9]{16}\b
    | \bAIza[A-Za-z0-9_\-]{20,}
    | \bxox[abprs]-[A-Za-z0-9\-]{10,}
    | \b(?:hf|gsk|r8|nvapi|pypi|xai|pplx|tgp)[_\-][A-Za-z0-9_\-]{16,}
    | \beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*)?
    | -----BEGIN\ [A-Z ]*PRIVATE\ KEY-----[\s\S]*?(?:-----END\ [A-Z ]*PRIVATE\ KEY-----|\Z)
    | (?i:\b(?:bearer|basic)\s+)[A-Za-z0-9_\-.=+/~]{8,}
    """
)
_COLOUR = re.compile(r"(\x1b\[[0-9;]*[A-Za-z])")
# Names that look secret and are not: counts of tokens, cache keys and the like.
_HARMLESS = re.compile(r"(?i)^(?:max_|input_|output_|prompt_|completion_|total_|n_)?tokens?$")


def redact(text: str) -> str:
    """Return text without anything that looks like a secret.

    Taken out: values of environment variables with secret names, `key = value` fields with secret
    names, credentials and secret parameters in URLs, authorization headers, and strings in the
    well-known shapes of keys.
    """
    for secret in _environment_secrets():
        if secret in text:
            text = text.replace(secret, MARK)
    # The last letter of a colour code would hide where a key begins.
    return "".join(map(_without_shapes, _COLOUR.split(text)))


def _without_shapes(text: str) -> str:
    text = _USERINFO.sub(rf"\1{MARK}@", text)
    text = _QUERY.sub(rf"\1{MARK}", text)
    text = _SECRET_FIELD.sub(_field, text)
    return _SHAPES.sub(MARK, text)


def redact_json(value: JSON) -> JSON:
    """Return a JSON value with secret fields and secret-looking strings taken out."""
    if isinstance(value, str):
        return redact(storable(value))
    if isinstance(value, Mapping):
        return {
            storable(str(key)): MARK
            if _is_secret_name(str(key)) and item is not None
            else redact_json(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [redact_json(item) for item in value]
    return value


def clean_url(url: str) -> str:
    """Return a URL without user, password, query and fragment: only what names the endpoint."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return MARK
    host = f"[{host}]" if ":" in host else host
    return redact(urlunsplit((parts.scheme, host + port, parts.path, "", "")))


def error_line(error: BaseException | str) -> str:
    """Return one short, redacted, escaped line for an error."""
    if isinstance(error, str):
        text = error
    else:
        text = f"{type(error).__name__}: {_text_of(error)}".rstrip(": ")
    # Redact before cutting: half a key is still half a key.
    line = " ".join(redact(storable(text[: 16 * MAX_LINE])).split())
    line = escape(line)
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - 1] + "…"


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "its text can't be made"


@lru_cache(maxsize=4096)
def _is_secret_name(name: str) -> bool:
    return bool(_SECRET_NAME.search(name)) and not _HARMLESS.match(name)


def _field(match: re.Match[str]) -> str:
    return match.group(1) + MARK


def _environment_secrets() -> list[str]:
    # Longest first, so that one secret inside another leaves no rest.
    found = {os.environ.get(name, "").strip() for name in os.environ if _is_secret_name(name)}
    return sorted((value for value in found if len(value) >= MIN_SECRET), key=len, reverse=True)
