"""Inputs for the reader: bytes, JSON and bundles, broken in every way that a random hand finds."""

import copy
import json

from proofrun_tamper import at, leaves, objects, put, reseal

BYTES = (
    b"NaN", b"1e400", b"-0", b"{", b"}", b"[", b"]", b'"', b"\\", b"\\ud800", b"\x00", b"\xff",
    b"\xed\xa0\x80", b",", b":", b"null", b"true", b'"":', b"9" * 20, b"-", b".", b"e", b"\n",
    b"\xef\xbb\xbf", b"[" * 100, b'{"a":' * 70, b"sha256:",
)  # fmt: skip
VALUES = (
    None, True, False, 0, 1, -1, 2**53 - 1, -(2**53 - 1), 0.5, 1e-7, 1e300, -1e-300, "", "x",
    "\x1b[2J\u202e", "sha256:" + "0" * 64, "n" * 5_000, [], {}, [[]], [None], {"": {}},
    [[[[[[]]]]]],
    ["award-bias"], {"kind": "message"}, "completed", "not_run", "poisoned", "\U0001f600",
)  # fmt: skip


def broken_bytes(random, base):
    """A bundle's bytes with some of them changed."""
    data = bytearray(base)
    for _ in range(random.choice((1, 1, 1, 2, 5, 30))):
        place = random.randrange(len(data) + 1)
        kind = random.randrange(6)
        if kind == 0:
            data[place:place] = random.choice(BYTES)
        elif kind == 1:
            del data[place : place + random.randrange(1, 40)]
        elif kind == 2 and data:
            data[place % len(data)] ^= 1 << random.randrange(8)
        elif kind == 3:
            start = random.randrange(len(data) + 1)
            data[place:place] = data[start : start + random.randrange(1, 200)]
        elif kind == 4:
            del data[place:]
        else:
            data[place : place + random.randrange(1, 4)] = random.choice(BYTES)
    return bytes(data)


def random_json(random, depth=0):
    """Any JSON value, with the words of bundles in it."""
    kind = random.randrange(8)
    if kind < 2 and depth < 6:
        return [random_json(random, depth + 1) for _ in range(random.randrange(4))]
    if kind < 5 and depth < 6:
        return {
            random.choice(WORDS): random_json(random, depth + 1) for _ in range(random.randrange(5))
        }
    return copy.deepcopy(random.choice(VALUES))


WORDS = (
    "kind", "schema_version", "report", "identity", "suite", "agent", "run", "plan", "pair_trials",
    "traces", "texts", "summary", "digests", "submission", "ci", "producer", "statement", "clean",
    "poisoned", "termination", "attempts", "events", "final_state", "__proto__", "", "\ud7ff",
)  # fmt: skip


def broken_value(random, base, paths, suite):
    """A bundle with some values replaced, left out, added or moved; often sealed again."""
    bundle = json.loads(base)
    for _ in range(random.choice((1, 1, 2, 4))):
        _break(random, bundle, paths)
    level = random.choice((None, "digests", "digests", "figures", "outcomes", "verdicts"))
    if level is not None and isinstance(bundle.get("report"), dict):
        reseal(bundle, suite, level)
    return bundle


def _break(random, bundle, paths):
    path = random.choice(paths)
    try:
        kind = random.randrange(5)
        if kind == 0:
            put(bundle, path, copy.deepcopy(random.choice(VALUES)))
        elif kind == 1:
            del at(bundle, path[:-1])[path[-1]]
        elif kind == 2:
            put(bundle, path, copy.deepcopy(at(bundle, random.choice(paths))))
        elif kind == 3:
            put(bundle, path, random_json(random))
        else:
            parent = at(bundle, path[:-1])
            if isinstance(parent, list):
                parent.insert(random.randrange(len(parent) + 1), random_json(random))
            else:
                parent[random.choice(WORDS)] = random_json(random)
    except (KeyError, IndexError, TypeError):
        return  # an earlier change took the place away


def paths_of(base):
    """The paths of a bundle's leaves and objects, the report's rarer parts as often as texts."""
    value = json.loads(base)
    found = [path for path, _ in leaves(value)] + [path for path, _ in objects(value) if path]
    few = [path for path in found if path[:2] not in (("report", "traces"), ("report", "texts"))]
    return found + few


def dumps(value):
    """A value as bytes, canonical in most cases."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )
