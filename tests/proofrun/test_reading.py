"""Rung 1: bytes that are no strict, canonical JSON, and the names of the checks that say so."""

import json
import re

import pytest

from impact_twin.canonical import digest_bytes
from impact_twin.proofrun.reading import ReadLimits
from impact_twin.proofrun.verify import Verifier


def failed(verifier, data):
    verification = verifier.verify(data)
    assert not verification.valid
    check = verification.failed
    assert check is not None
    assert "can't be made" not in check.message
    return check


def nested(depth):
    return b'{"a":' + b"[" * depth + b"]" * depth + b"}"


def changes(text):
    """Every way to write the same, or nearly the same, other than canonically."""
    value = json.loads(text)
    utf8 = text.decode("utf-8")
    yield "newline at the end", text + b"\n", "canonical"
    yield "space in front", b" " + text, "canonical"
    yield "byte-order mark", b"\xef\xbb\xbf" + text, "json"
    yield "UTF-16", utf8.encode("utf-16"), "json"
    yield "UTF-16 without a mark", utf8.encode("utf-16-le"), "json"
    yield "UTF-32", utf8.encode("utf-32"), "json"
    yield "Latin-1", utf8.replace("\u202e", "\xe9").encode("latin-1"), "json"
    yield "indented", json.dumps(value, indent=1, sort_keys=True).encode(), "canonical"
    yield (
        "ASCII escapes",
        json.dumps(value, sort_keys=True, separators=(",", ":")).encode(),
        ("canonical"),
    )
    backwards = dict(reversed(value.items()))
    yield (
        "keys backwards",
        json.dumps(backwards, ensure_ascii=False, separators=(",", ":")).encode(),
        "canonical",
    )
    yield "escaped slash", text.replace(b"/", b"\\/", 1), "canonical"
    yield "escaped letter", text.replace(b'"kind"', b'"\\u006bind"', 1), "canonical"
    yield "key twice", text.replace(b'"ci":null', b'"ci":null,"ci":null', 1), "json"
    yield "key twice, escaped", text.replace(b'"ci":null', b'"ci":null,"\\u0063i":null', 1), "json"
    yield "key twice, deep inside", text.replace(b'"trial":1', b'"trial":1,"trial":1', 1), "json"
    yield "comma before the end", text[:-1] + b",}", "json"
    yield "comment", text[:-1] + b"/* */}", "json"
    yield "single quotes", text.replace(b'"ci"', b"'ci'", 1), "json"
    yield "cut short", text[: len(text) // 2], "json"
    yield "last byte gone", text[:-1], "json"
    yield "twice", text + text, "json"
    yield "in a list", b"[" + text + b"]", "schema"
    yield "a text", json.dumps(utf8, ensure_ascii=False).encode(), "schema"
    yield "empty", b"", "json"
    yield "nothing but space", b"  \n", "json"
    yield "null", b"null", "schema"
    yield "true", b"true", "schema"
    yield "number", b"1", "schema"
    yield "NUL", text + b"\0", "json"
    yield "NUL inside a text", text.replace(b"Hello", b"He\0lo", 1), "json"
    yield "newline inside a text", text.replace(b"Hello", b"He\nlo", 1), "json"
    yield "lone surrogate", text.replace(b"Hello", b"\\ud800", 1), "json"
    yield "lone surrogate as bytes", text.replace(b"Hello", b"\xed\xa0\x80", 1), "json"
    yield "overlong", text.replace(b"Hello", b"\xc0\xaf", 1), "json"
    yield "beyond Unicode", text.replace(b"Hello", b"\xf4\x90\x80\x80", 1), "json"
    yield "deep list", nested(100), "json"
    yield "very deep list", b"[" * 1_000_000, "json"
    yield "very deep object", b'{"a":' * 500_000, "json"
    yield "not JSON", b"PK\x03\x04 not JSON at all", "json"
    for word in (b"NaN", b"Infinity", b"-Infinity", b"nan", b"undefined", b"None", b"True"):
        yield word.decode(), text.replace(b'"ci":null', b'"ci":' + word, 1), "json"


def numbers(text):
    """Numbers that JSON lacks, that no double holds, or that are written otherwise, anywhere."""
    plain = list(re.finditer(rb"(?<=:)[0-9]+(?=[,}])", text))
    for place, match in enumerate(plain[:: len(plain) // 5]):
        digits = match.group()
        for new, check in (
            (b"NaN", "json"), (b"-Infinity", "json"), (b"1e400", "json"), (b"-1e400", "json"),
            (b"1" + b"0" * 400, "json"), (b"-1" + b"0" * 400, "json"),
            (b"9007199254740993", "json"),
            (b"0x10", "json"), (b"+1", "json"), (b".5", "json"), (b"1.", "json"), (b"01", "json"),
            (b"1_0", "json"), ("\u0661".encode(), "json"),
            (b"-0", "canonical"), (b"-0.0", "canonical"), (digits + b".0", "canonical"),
            (digits + b"e0", "canonical"), (digits + b"E0", "canonical"), (b"1e-400", "canonical"),
            (b"0.1000000000000000055511151231257827", "canonical"),
        ):  # fmt: skip
            changed = text[: match.start()] + new + text[match.end() :]
            yield f"{place} {new[:20]!r}", changed, check


@pytest.mark.parametrize("kind", [changes, numbers])
def test_what_is_not_strict_or_not_canonical_is_refused(kind, messy_bytes, verifier):
    cases = list(kind(messy_bytes))
    assert len(cases) > 40
    for name, data, check in cases:
        assert data != messy_bytes, name
        assert failed(verifier, data).name == check, name


def test_every_bit_of_the_report_counts(messy_bytes, verifier):
    report = json.loads(messy_bytes)["report"]
    for place in range(0, len(messy_bytes), len(messy_bytes) // 60):
        changed = bytearray(messy_bytes)
        changed[place] ^= 1
        verification = verifier.verify(bytes(changed))
        # Who submits is covered by the bundle's identity alone.
        assert not verification.valid or verification.bundle["report"] == report
        assert verification.digest != digest_bytes(messy_bytes)


def test_a_file_may_not_be_larger_than_allowed(messy_bytes, suite):
    small = Verifier([suite], ReadLimits(max_bytes=len(messy_bytes) - 1))
    check = failed(small, messy_bytes)
    assert check.name == "size"
    assert "--max-bytes" in check.message
    assert Verifier([suite], ReadLimits(max_bytes=len(messy_bytes))).verify(messy_bytes).valid


def test_a_file_may_not_be_deeper_than_allowed(messy_bytes, suite):
    check = failed(Verifier([suite], ReadLimits(max_depth=6)), messy_bytes)
    assert (check.name, check.message) == ("json", "nested deeper than 6")


@pytest.mark.parametrize("unit", [b"[],", b'{"":0},', b"0,", b'"",', b"{},"])
def test_a_file_may_not_hold_more_values_than_memory(unit, verifier):
    data = b"[" + unit * (32 * 2**20 // len(unit)) + b"0]"
    assert failed(verifier, data).name == "size"


def test_the_first_difference_is_named(messy_bytes, verifier):
    check = failed(verifier, messy_bytes + b" ")
    assert f"from byte {len(messy_bytes)} on" in check.message
