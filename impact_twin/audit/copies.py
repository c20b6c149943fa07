"""Copies of an environment, made only as far as a rule could change them.

A rule may change the environment that it is given, so every question gets its own. Copying is most
of the work. A part of the environment that nothing in a rule's code names can't be changed by it:
such a part is shared between copies.
"""

from __future__ import annotations

import pickle
from collections.abc import Collection
from typing import Any

# Names through which code can reach what it doesn't name.
_DYNAMIC = frozenset(
    {"getattr", "setattr", "delattr", "vars", "locals", "globals", "eval", "exec", "__dict__"}
)


def shareable(environment_type: Any, names: Collection[str]) -> frozenset[str]:
    """Return the parts of an environment that code with these names can't reach.

    Args:
        environment_type: A pydantic model class.
        names: Attribute names and plain names in the code, and in all that it calls.
    """
    if _DYNAMIC & set(names):
        return frozenset()
    return frozenset(environment_type.model_fields) - set(names)


class Frozen:
    """An environment to make copies from, in a third of the time that deep copies take."""

    def __init__(self, environment: Any, shared: Collection[str] = ()) -> None:
        """Keep the environment as it is now.

        Args:
            environment: A pydantic model; its shared parts must not be changed afterwards.
            shared: Names of parts that copies share.
        """
        parts = {name: getattr(environment, name) for name in type(environment).model_fields}
        self.shared = frozenset(shared)
        self._type = type(environment)
        self._kept = {name: part for name, part in parts.items() if name in self.shared}
        own = {name: part for name, part in parts.items() if name not in self.shared}
        self._bytes = pickle.dumps(own, 5)

    def thaw(self, apart: Collection[str] = ()) -> Any:
        """Return a new copy.

        Args:
            apart: Shared parts that this copy must have for itself.
        """
        parts = pickle.loads(self._bytes)  # noqa: S301 - our own bytes, of this process
        for name, part in self._kept.items():
            alone = name in apart
            parts[name] = pickle.loads(pickle.dumps(part, 5)) if alone else part  # noqa: S301
        return self._type.model_construct(**parts)
