"""What a scoring rule is made of: the source of its class and of all that it calls in the package.

The digest is over source text, so it is the same in every Python version. A rule's own class and
its bases count whole; helper functions count whole; of the classes that a rule only handles (the
environment and its records) the fields count, the validators, and the methods that something in
the rule names. Code from other packages is named, not read.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from impact_twin.canonical import digest, digest_bytes

PACKAGE = "agentdojo"
_MISSING = object()
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class RuleSource:
    """What one rule is made of.

    Attributes:
        digest: Over the class and all parts; equal digests mean equal source.
        own: Digest of the source of the class alone, without its decorators.
        uses: Name of each part (`module:qualname`) to the digest of its source.
        captured: (task id, `module:qualname`, class) of task objects held in a closure.
        altered: Functions of the class that are not those of its source: patched at run time.
        outside: Names from other packages.
        names: Every attribute and name that the code of the rule and of its parts reads.
    """

    digest: str
    own: str
    uses: dict[str, str]
    captured: tuple[tuple[str, str, type], ...]
    altered: tuple[str, ...]
    outside: tuple[str, ...]
    names: frozenset[str]


def label(thing: Any) -> str:
    """Return `module:qualname` of a class or function."""
    return f"{thing.__module__}:{thing.__qualname__}"


class Sources:
    """Reads sources, each file once; ask one object about many rules."""

    def __init__(self) -> None:
        self._files: dict[str, _File | None] = {}
        self._known: dict[type, RuleSource] = {}

    def of_rule(self, rule: type) -> RuleSource:
        """Return what a task class is made of."""
        if rule not in self._known:
            self._known[rule] = _Walk(self, rule).result()
        return self._known[rule]

    def file(self, module: str) -> _File | None:
        """Return a module's parsed source, or None when it has none."""
        if module not in self._files:
            self._files[module] = _read(module)
        return self._files[module]

    def line(self, rule: type) -> int:
        """Return the line of a class, 0 when its source isn't found."""
        found = self.file(rule.__module__)
        node = found.class_node(rule) if found else None
        return node.lineno if node else 0


@dataclass(frozen=True)
class _Facts:
    digest: str
    attributes: frozenset[str]
    names: tuple[str, ...]


class _File:
    """A module's source, parsed."""

    def __init__(self, module: str, name: str, text: str) -> None:
        self.module = module
        self.name = name
        self._lines = text.splitlines()
        self._facts: dict[ast.stmt, _Facts] = {}
        self._classes: dict[str, list[ast.ClassDef]] = {}
        self._functions: dict[str, list[_Function]] = {}
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                self._classes.setdefault(node.name, []).append(node)
            elif isinstance(node, _Function):
                self._functions.setdefault(node.name, []).append(node)

    def facts(self, node: ast.stmt) -> _Facts:
        """Return a statement's digest and the names in it."""
        if node not in self._facts:
            # How a class is registered is not what it checks.
            skipped = {
                id(inner)
                for decorator in (node.decorator_list if isinstance(node, ast.ClassDef) else ())
                for inner in ast.walk(decorator)
            }
            walked = [inner for inner in ast.walk(node) if id(inner) not in skipped]
            self._facts[node] = _Facts(
                digest_bytes(self._text(node).encode()),
                frozenset(name for inner in walked for name in _attributes(inner)),
                tuple(sorted({name for inner in walked for name in _read_names(inner)})),
            )
        return self._facts[node]

    def _text(self, node: ast.stmt) -> str:
        """Return a statement's lines, without decorators, indentation and trailing blanks."""
        # From the first column of its first line to its last: comments inside are part of it.
        lines = self._lines[node.lineno - 1 : node.end_lineno]
        indent = len(lines[0]) - len(lines[0].lstrip())
        return "\n".join(
            line[indent:].rstrip() if not line[:indent].strip() else line.rstrip() for line in lines
        )

    def class_node(self, cls: type) -> ast.ClassDef | None:
        # The name a class was defined with: combined tasks are renamed afterwards.
        candidates = self._classes.get(cls.__qualname__.rsplit(".", 1)[-1], [])
        starts = {code.co_firstlineno for _, code in _codes(cls)}
        for node in candidates:
            if any(node.lineno <= line <= (node.end_lineno or 0) for line in starts):
                return node
        return candidates[-1] if candidates else None

    def function_node(self, code: types.CodeType) -> _Function | None:
        for node in self._functions.get(code.co_name, []):
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            if code.co_firstlineno in (first, node.lineno):
                return node
        return None


def _read(module: str) -> _File | None:
    loaded = sys.modules.get(module)
    path = getattr(loaded, "__file__", None)
    if not path:
        return None
    try:
        return _File(module, path, inspect.getsource(loaded))  # type: ignore[arg-type]
    except (OSError, SyntaxError, TypeError):
        return None


def _codes(cls: type) -> Iterator[tuple[str, types.CodeType]]:
    for name, value in list(vars(cls).items()):
        inner = getattr(value, "__func__", getattr(value, "fget", value))
        code = getattr(inner, "__code__", None)
        if isinstance(code, types.CodeType):
            yield name, code


@dataclass
class _Walk:
    """One walk over all that a rule reaches in the package."""

    sources: Sources
    rule: type
    uses: dict[str, str] = field(default_factory=dict)
    captured: dict[str, tuple[str, str, type]] = field(default_factory=dict)
    altered: list[str] = field(default_factory=list)
    outside: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    plain: set[str] = field(default_factory=set)
    handled: dict[type, set[str]] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)

    def result(self) -> RuleSource:
        own = self._whole_class(self.rule)
        for base in self.rule.__mro__[1:]:
            if _ours(base):
                self.uses[label(base)] = self._whole_class(base)
        before = -1
        # Naming a method brings its source, which names more: go round until nothing is new.
        while before != (before := len(self.uses) + len(self.attributes)):
            for cls in list(self.handled):
                self._handled_class(cls)
        uses = dict(sorted(self.uses.items()))
        return RuleSource(
            digest=digest({"rule": own, "uses": uses}),
            own=own,
            uses=uses,
            captured=tuple(self.captured[key] for key in sorted(self.captured)),
            altered=tuple(sorted(self.altered)),
            outside=tuple(sorted(self.outside)),
            names=frozenset(self.attributes | self.plain),
        )

    def _whole_class(self, cls: type) -> str:
        source = self.sources.file(cls.__module__)
        node = source.class_node(cls) if source else None
        for name, code in _codes(cls):
            inside = node and node.lineno <= code.co_firstlineno <= (node.end_lineno or 0)
            if not (source and code.co_filename == source.name):
                self.altered.append(f"{label(cls)}.{name}")
            elif not inside:
                # Attached after the class, as AgentDojo's combinator does.
                self._function_code(f"{label(cls)}.{name}", code, source)
        self._closures(cls)
        if source is None or node is None:
            return digest(None)
        self._constants(cls)
        return self._follow(node, source)

    def _constants(self, cls: type) -> None:
        """A class made by a function has texts that its source doesn't hold, such as its prompt."""
        if "<locals>" in cls.__qualname__:
            for name, value in list(vars(cls).items()):
                if isinstance(value, str) and not name.startswith("__"):
                    self.uses[f"{label(cls)}.{name}"] = digest(value)

    def _closures(self, cls: type) -> None:
        for _, value in sorted(vars(cls).items()):
            function = getattr(value, "__func__", value)
            if isinstance(function, types.FunctionType):
                names = function.__code__.co_freevars
                for name, cell in zip(names, function.__closure__ or (), strict=True):
                    self._closed_over(name, cell)

    def _closed_over(self, name: str, cell: types.CellType) -> None:
        try:
            value = cell.cell_contents
        except ValueError:
            return
        if name == "__class__":
            return
        if _is_task(type(value)):
            task = type(value)
            part = self.sources.of_rule(task)
            self.captured[name] = (str(getattr(value, "ID", "")), label(task), task)
            self.uses[f"captured {name}"] = part.digest
            self.altered.extend(part.altered)
            self.outside.update(part.outside)
            self.plain |= part.names
        else:
            self._value(f"captured {name}", value)

    def _handled_class(self, cls: type) -> None:
        source = self.sources.file(cls.__module__)
        node = source.class_node(cls) if source else None
        if source is None or node is None:
            return
        done = self.handled[cls]
        for item in node.body:
            name = _member(item)
            if not name or name in done:
                continue
            # Validators and computed fields run without being named; other methods don't.
            plain = isinstance(item, _Function) and not item.decorator_list
            if plain and not name.startswith("__") and name not in self.attributes:
                continue
            done.add(name)
            self.uses[f"{label(cls)}.{name}"] = self._follow(item, source)
        for base in cls.__mro__[1:]:
            if _ours(base):
                self.handled.setdefault(base, set())

    def _follow(self, node: ast.stmt, source: _File) -> str:
        """Follow every name in a statement; return the statement's digest."""
        facts = source.facts(node)
        self.attributes |= facts.attributes
        self.plain.update(facts.names)
        space = vars(sys.modules[source.module]) if source.module in sys.modules else {}
        for name in facts.names:
            value = space.get(name, _MISSING)
            if value is not _MISSING:
                self._value(f"{source.module}:{name}", value)
        return facts.digest

    def _value(self, name: str, value: Any) -> None:
        origin = typing.get_origin(value)
        if origin is not None and origin is not value:
            for inner in (origin, *typing.get_args(value)):
                self._value(name, inner)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, functools.partial):
            bound = [[repr(item) for item in value.args], sorted(value.keywords.items())]
            self.uses[name] = digest(_plain([label(value.func), bound]))
            self._value(name, value.func)
        elif isinstance(value, types.ModuleType):
            self._outside(value.__name__)
        elif _is_plain(value):
            self.uses[name] = digest(_plain(value))
        elif _ours(type(value)):
            self._class(type(value))

    def _class(self, cls: type) -> None:
        if not _ours(cls):
            self._outside(cls.__module__)
        elif _is_task(cls):
            if cls is not self.rule and label(cls) not in self.uses:
                self.uses[label(cls)] = ""
                self.uses[label(cls)] = self._whole_class(cls)
        elif cls.__name__ != "TaskSuite":
            self.handled.setdefault(cls, set())

    def _function(self, function: types.FunctionType) -> None:
        if not (function.__module__ or "").startswith(PACKAGE):
            self._outside(function.__module__ or "")
        elif id(function) not in self.seen:
            self.seen.add(id(function))
            source = self.sources.file(function.__module__)
            if source is None or function.__code__.co_filename != source.name:
                self.altered.append(label(function))
            else:
                self._function_code(label(function), function.__code__, source)

    def _function_code(self, name: str, code: types.CodeType, source: _File) -> None:
        node = source.function_node(code)
        if node is None:
            self.altered.append(name)
            return
        self.uses[name] = self._follow(node, source)

    def _outside(self, module: str) -> None:
        top = module.partition(".")[0]
        if top and top not in sys.stdlib_module_names and top != PACKAGE:
            self.outside.add(top)


def _attributes(node: ast.AST) -> Sequence[str]:
    if isinstance(node, ast.Attribute):
        return (node.attr,)
    return node.kwd_attrs if isinstance(node, ast.MatchClass) else ()


def _read_names(node: ast.AST) -> Sequence[str]:
    return (node.id,) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else ()


def _member(item: ast.stmt) -> str:
    """Return the name that a statement of a class body defines, empty for a docstring."""
    if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return item.name
    if isinstance(item, ast.AnnAssign):
        return ast.unparse(item.target)
    if isinstance(item, ast.Assign):
        return ", ".join(ast.unparse(target) for target in item.targets)
    return ""


def _ours(cls: type) -> bool:
    return (getattr(cls, "__module__", None) or "").partition(".")[0] == PACKAGE


def _is_task(cls: type) -> bool:
    return any(
        base.__module__ == f"{PACKAGE}.base_tasks"
        and base.__name__ in ("BaseUserTask", "BaseInjectionTask")
        for base in cls.__mro__
    )


def _is_plain(value: Any) -> bool:
    if isinstance(value, str | bool | int | float | type(None)):
        return True
    if isinstance(value, list | tuple | set | frozenset):
        return all(_is_plain(item) for item in value)
    return isinstance(value, dict) and all(
        isinstance(key, str) and _is_plain(item) for key, item in value.items()
    )


def _plain(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=repr)
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
