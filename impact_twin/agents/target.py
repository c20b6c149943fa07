"""`module:attr`: a factory of the user's, and a source of the agents that it makes."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from impact_twin.agents.calling import Instances, settled
from impact_twin.agents.protocol import CaseRequest
from impact_twin.agents.redact import error_line, redact
from impact_twin.errors import InputError
from impact_twin.procurement.model import JSON
from impact_twin.text import storable

PROBE_S = 120.0
MAX_NAME = 100


@dataclass(frozen=True)
class Target:
    """An imported `module:attr`.

    Attributes:
        call: The factory.
        takes_seed: Whether it has a parameter `seed`.
        positional: Whether `seed` can only be given by position.
        source_digest: SHA-256 of the module's file; None when it has none.
    """

    call: Callable[..., Any]
    takes_seed: bool
    positional: bool
    source_digest: str | None

    def make(self, seed: int) -> Any:
        """Call the factory."""
        if not self.takes_seed:
            return self.call()
        return self.call(seed) if self.positional else self.call(seed=seed)


def import_target(target: str, *, option: str = "--agent") -> Target:
    """Import `module:attr` as `python -m` would: the current directory comes first.

    Raises:
        InputError: not of that form, the module can't be imported, it lacks the attribute, or
            that isn't a callable without arguments (or with `seed` alone).
    """
    module_name, colon, path = target.partition(":")
    if not colon or not module_name or not path:
        raise InputError(
            f"{error_line(target)!r} does not name a factory",
            where=option,
            mend="Write module:attr, for example mypkg.agent:build.",
        )
    here = os.getcwd()
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    found: Any = _import(module_name, option)
    module = found
    try:
        for part in path.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise InputError(
            f"the module {error_line(module_name)} has no attribute {error_line(path)}",
            where=option,
            mend="Name a factory that the module defines.",
        ) from None
    return _checked(found, target, module, option)


def _import(module_name: str, option: str) -> Any:
    try:
        return importlib.import_module(module_name)
    except KeyboardInterrupt:
        raise
    except ModuleNotFoundError as error:
        missing = error_line(str(error.name))
        mend = (
            "Run from the folder that holds it, or install it."
            if module_name.partition(".")[0] == str(error.name).partition(".")[0]
            else f"Install what provides {missing}."
        )
        raise InputError(
            f"the module {error_line(module_name)} can't be imported: no module named {missing}",
            where=option,
            mend=mend,
        ) from None
    except BaseException as error:
        raise InputError(
            f"the module {error_line(module_name)} can't be imported: {error_line(error)}",
            where=option,
            mend=f"Try: python -c 'import {error_line(module_name)}'",
        ) from None


def _checked(found: Any, target: str, module: Any, option: str) -> Target:
    shown = error_line(target)
    if not callable(found):
        raise InputError(
            f"{shown} is a {type(found).__name__}, which can't be called",
            where=option,
            mend="Name a function or class that returns an agent.",
        )
    try:
        parameters = dict(inspect.signature(found).parameters)
    except (TypeError, ValueError):
        parameters = {}
    seed = parameters.pop("seed", None)
    needed = [
        name
        for name, item in parameters.items()
        if item.default is item.empty and item.kind not in (item.VAR_POSITIONAL, item.VAR_KEYWORD)
    ]
    if needed:
        raise InputError(
            f"{shown} needs the argument {error_line(', '.join(needed))}",
            where=option,
            mend="Name a factory that takes no argument, or only seed.",
        )
    return Target(
        call=found,
        takes_seed=seed is not None,
        positional=seed is not None and seed.kind is seed.POSITIONAL_ONLY,
        source_digest=_source_digest(module),
    )


def _source_digest(module: Any) -> str | None:
    file = getattr(module, "__file__", None)
    if not isinstance(file, str):
        return None
    try:
        return "sha256:" + hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return None


class TargetSource:
    """Agents made by `module:attr`, which takes no argument or `seed`.

    A kind of agent says what its objects are called, what method they must have, and how a case is
    run on one.

    Args:
        target: `module:attr`.
        label: What to call the agent in the report; None: its own `name`, else the target.
    """

    KIND: ClassVar[str]
    OPTION: ClassVar[str]
    NOUN: ClassVar[str]
    METHOD: ClassVar[str]
    MEND: ClassVar[str]

    def __init__(self, target: str, label: str | None = None) -> None:
        self._target = target
        self._label = label
        self._lock = threading.Lock()
        self._factory: Target | None = None
        self._probe: list[Any] = []
        self._own_name: str | None = None
        self._instances = Instances()

    @property
    def spec(self) -> Mapping[str, Any]:
        """The spec that `load_source` takes."""
        return {"kind": self.KIND, "target": self._target, "label": self._label}

    def identity(self) -> Mapping[str, JSON]:
        """Name, target, whether it takes a seed, and the digest of the module's file."""
        loaded = self._load()
        return {
            "name": self._label or self._own_name or redact(self._target),
            "kind": self.KIND,
            "target": redact(self._target),
            "takes_seed": loaded.takes_seed,
            "source_digest": loaded.source_digest,
        }

    def prepare(self) -> None:
        """Import the factory and make one agent, to see that it can be done.

        A factory without `seed` hands that agent to the first case; with `seed` it is dropped.
        """
        loaded = self._load()
        try:
            agent = settled(loaded.make(0), PROBE_S)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise InputError(
                f"{error_line(self._target)} failed to make {self.NOUN}: {error_line(error)}",
                where=self.OPTION,
                mend=f"The factory must return {self.NOUN} without being given anything but seed.",
            ) from None
        if not callable(getattr(agent, self.METHOD, None)):
            what = f"a {type(agent).__name__} without a method {self.METHOD}"
            raise InputError(
                f"{error_line(self._target)} returned {'None' if agent is None else what}",
                where=self.OPTION,
                mend=self.MEND,
            )
        name = getattr(agent, "name", None)
        if isinstance(name, str) and name.strip():
            self._own_name = redact(storable(name.strip()))[:MAX_NAME]
        if not loaded.takes_seed:
            with self._lock:
                self._probe[:] = [agent]

    def _make(self, request: CaseRequest) -> Any:
        """Return the agent that `prepare` made, or what the factory returns."""
        with self._lock:
            if self._probe:
                return self._probe.pop()
        return self._load().make(request.seed)

    def _load(self) -> Target:
        with self._lock:
            if self._factory is None:
                self._factory = import_target(self._target, option=self.OPTION)
            return self._factory
