"""Where AgentDojo's tasks are registered, read from its source files without importing them.

A task class registers itself when its module is imported: `register_user_task` and
`register_injection_task` write to the slot of version 1.0.0, `update_*` to the slot that they name.
Reading the source shows what a module would register even when nothing imports it.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from impact_twin.errors import InputError

Slot = tuple[int, int, int]
FIRST: Slot = (1, 0, 0)
_FOLDER = "default_suites"
_PLAIN = frozenset({"register_user_task", "register_injection_task", "create_combined_task"})
_UPDATE = frozenset({"update_user_task", "update_injection_task", "update_combined_task"})
_NUMBER = re.compile(r"(UserTask|InjectionTask)(\d+)")
_VERSION = re.compile(r"v\d+(?:_\d+)*")


@dataclass(frozen=True)
class Registration:
    """One registration in a source file.

    Attributes:
        module: Dotted name of the module.
        line: Line of the class or of the call.
        name: Name of the task class, such as `UserTask13`.
        how: The method called, such as `update_user_task`.
        suite: Name of the suite, or "" when the source doesn't say.
        task: Task id, such as `user_task_13`.
        slot: The version slot written to.
    """

    module: str
    line: int
    name: str
    how: str
    suite: str
    task: str
    slot: Slot

    @property
    def plain(self) -> bool:
        """Whether the registration names no version and so writes to the slot of 1.0.0."""
        return self.how in _PLAIN

    @property
    def folder_version(self) -> Slot:
        """The version that the module's folder is named after."""
        return folder_version(self.module)

    @property
    def label(self) -> str:
        """Module and class, as `module:Class`."""
        return f"{self.module}:{self.name}"


def folder_version(module: str) -> Slot:
    """Return the version of a module's folder; 1.0.0 when it has none.

    >>> folder_version("agentdojo.default_suites.v1_1_2.workspace.user_tasks")
    (1, 1, 2)
    """
    for part in module.split("."):
        if _VERSION.fullmatch(part):
            numbers = [int(number) for number in part[1:].split("_")][:3]
            padded = numbers + [0] * (3 - len(numbers))
            return padded[0], padded[1], padded[2]
    return FIRST


def package_folder() -> Path:
    """Return the folder of the installed AgentDojo, without importing it.

    Raises:
        InputError: AgentDojo is not installed.
    """
    spec = importlib.util.find_spec("agentdojo")
    if spec is None or not spec.submodule_search_locations:
        raise InputError("agentdojo is not installed", mend="Install impact-twin again.")
    return Path(next(iter(spec.submodule_search_locations)))


def find_registrations(package: Path | None = None) -> tuple[Registration, ...]:
    """Read every registration of AgentDojo's default suites, in the order of modules and lines.

    Args:
        package: The package's folder; the installed one by default.
    """
    root = package or package_folder()
    pool: dict[Path, _Module] = {}
    files = sorted((root / _FOLDER).rglob("*.py"))
    return tuple(found for path in files for found in _module(path, root, pool).registrations())


def left_out(
    registrations: Collection[Registration], loaded: Collection[str] | None = None
) -> list[str]:
    """Return the registering modules that are not loaded.

    Args:
        registrations: What the source files register.
        loaded: Names of the loaded modules; those of this process by default.
    """
    names = sys.modules if loaded is None else loaded
    return sorted({item.module for item in registrations if item.module not in names})


def _module(path: Path, root: Path, pool: dict[Path, _Module]) -> _Module:
    if path not in pool:
        pool[path] = _Module(path, root, pool)
    return pool[path]


class _Module:
    """One source file and the few things that a registration refers to."""

    def __init__(self, path: Path, root: Path, pool: dict[Path, _Module]) -> None:
        self.path = path
        self.root = root
        self.pool = pool
        parts = (root.name, *path.relative_to(root).with_suffix("").parts)
        self.name = ".".join(parts).removesuffix(".__init__")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"))

    def registrations(self) -> Iterator[Registration]:
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef):
                for decorator in node.decorator_list:
                    yield from self._from_decorator(decorator, node)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                yield from self._from_call(node.value)

    def _from_decorator(self, decorator: ast.expr, node: ast.ClassDef) -> Iterator[Registration]:
        call = decorator.func if isinstance(decorator, ast.Call) else decorator
        if not (isinstance(call, ast.Attribute) and isinstance(call.value, ast.Name)):
            return
        slot = FIRST
        if call.attr in _UPDATE and isinstance(decorator, ast.Call):
            slot = self._slot(decorator)
        elif call.attr not in _PLAIN:
            return
        yield from self._made(node.name, node.lineno, call, slot)

    def _from_call(self, call: ast.Call) -> Iterator[Registration]:
        method = call.func
        if not (isinstance(method, ast.Attribute) and isinstance(method.value, ast.Name)):
            return
        if method.attr not in ("create_combined_task", "update_combined_task") or not call.args:
            return
        name = self._constant(call.args[0])
        if isinstance(name, str):
            slot = self._slot(call) if method.attr in _UPDATE else FIRST
            yield from self._made(name, call.lineno, method, slot)

    def _made(
        self, name: str, line: int, method: ast.Attribute, slot: Slot
    ) -> Iterator[Registration]:
        number = _NUMBER.match(name)
        if number and isinstance(method.value, ast.Name):
            kind = "user_task" if number[1] == "UserTask" else "injection_task"
            suite = self._suite(method.value.id, 0)
            task = f"{kind}_{int(number[2])}"
            yield Registration(self.name, line, name, method.attr, suite, task, slot)

    def _slot(self, call: ast.Call) -> Slot:
        candidates = [*call.args, *(item.value for item in call.keywords)]
        for node in candidates:
            value = self._constant(node)
            if isinstance(value, tuple) and len(value) == 3:
                return value
        return FIRST

    def _constant(self, node: ast.expr) -> object:
        if isinstance(node, ast.Name):
            node = self._assigned(node.id) or node
        try:
            value: object = ast.literal_eval(node)
        except (ValueError, TypeError):
            return None
        return value

    def _assigned(self, name: str) -> ast.expr | None:
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == name for target in node.targets
            ):
                return node.value
        return None

    def _suite(self, name: str, depth: int) -> str:
        """Follow a name to the call that made the suite or combinator; return the suite's name."""
        if depth > 8:
            return ""
        value = self._assigned(name)
        if isinstance(value, ast.Call) and value.args:
            first = value.args[0]
            if isinstance(first, ast.Name):
                return self._suite(first.id, depth + 1)
            text = self._constant(first)
            return text if isinstance(text, str) else ""
        for node in self.tree.body:
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    if (alias.asname or alias.name) == name:
                        return self._elsewhere(node.module, alias.name, depth)
        return ""

    def _elsewhere(self, module: str, name: str, depth: int) -> str:
        path = self.root.parent.joinpath(*module.split("."))
        for candidate in (path.with_suffix(".py"), path / "__init__.py"):
            if candidate.is_file():
                return _module(candidate, self.root, self.pool)._suite(name, depth + 1)
        return ""
