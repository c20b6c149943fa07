"""Released AgentDojo run records: one reader for their older and newer shapes.

The format (AgentDojo, `agentdojo.logging.TraceLogger`, MIT licence): one JSON object a run. The
content of a message is a string in older files, a list of blocks in newer ones, or null. Version
fields are missing from older files. `security: true` means that the attack succeeded.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from impact_twin.audit.archive import Caps, Entry, entries
from impact_twin.canonical import loads_strict
from impact_twin.errors import InputError

# Attacks that want the user's task to fail: AgentDojo labels them by "not utility", whatever the
# injection task's own rule says (`BaseAttack.is_dos_attack`).
DOS_ATTACKS = frozenset(
    {"dos", "captcha_dos", "felony_dos", "offensive_email_dos", "swearwords_dos"}
)

# Workspace tools after which the state is another one; "" is a call that can't be read.
CHANGING_TOOLS = frozenset(
    {
        "",
        "add_calendar_event_participants",
        "append_to_file",
        "cancel_calendar_event",
        "create_calendar_event",
        "create_file",
        "delete_email",
        "delete_file",
        "get_unread_emails",
        "reschedule_calendar_event",
        "send_email",
        "share_file",
    }
)


@dataclass(frozen=True)
class ToolResult:
    """One tool call that a record says was executed, and what came back.

    Attributes:
        function: Name of the tool.
        args: Its arguments.
        text: The content of the result; empty when there was none.
        error: The tool's error, or None.
    """

    function: str
    args: dict[str, Any]
    text: str
    error: str | None

    @property
    def changes_state(self) -> bool:
        """Whether the call may have changed the state: it did not fail, and its tool can."""
        return self.error is None and self.function in CHANGING_TOOLS


@dataclass(frozen=True)
class Record:
    """One run record.

    Attributes:
        name: Its name in the folder or archive; untrusted text like all others here.
        configuration: Folder of the pipeline where the name has the released layout, else the
            record's own `pipeline_name` (which is "local" for several pipelines).
        pipeline: The record's `pipeline_name`.
        suite, user_task, injection_task, attack: Identifiers; None where the record has null.
        security: The saved label: True when the attack succeeded. None when it isn't a boolean.
        utility: The saved label of the user's task, or None.
        error: The record's own error (a provider's, a context length), or None.
        benchmark_version, package_version: As recorded, or None.
        injections: Injection vector to injected text.
        calls: Every call that the assistant asked for, as (function, arguments).
        results: The tool results, in order.
        output: Text of the last message if the assistant wrote it, else empty.
        odd: What of the record was not in a known shape, and was left out.
        unreadable: Why the file could not be read; such a record has only what its name says.
    """

    name: str
    configuration: str
    pipeline: str
    suite: str
    user_task: str
    injection_task: str | None
    attack: str | None
    security: bool | None
    utility: bool | None
    error: str | None
    benchmark_version: str | None
    package_version: str | None
    injections: dict[str, str]
    calls: tuple[tuple[str, dict[str, Any]], ...]
    results: tuple[ToolResult, ...]
    output: str
    odd: tuple[str, ...] = ()
    unreadable: str = ""

    @property
    def is_dos(self) -> bool:
        """Whether the label says "the user's task failed" instead of "the objective was met"."""
        return self.attack in DOS_ATTACKS


@dataclass(frozen=True)
class RecordSet:
    """All that a folder or archive held.

    Attributes:
        records: The records, in the order of their names.
        unreadable: (name, reason) of each file that could not be read as a record.
        others: Names of files that don't end in `.json`; they are counted, not read as records.
        repeated: Names of records whose case (see `case_key`) an earlier record has too.
    """

    records: tuple[Record, ...]
    unreadable: tuple[tuple[str, str], ...] = ()
    others: tuple[str, ...] = ()
    repeated: tuple[str, ...] = ()

    @property
    def files(self) -> int:
        """How many files were seen."""
        return len(self.records) + len(self.unreadable) + len(self.others)


def read_records(path: Path, caps: Caps | None = None) -> RecordSet:
    """Read every record of a folder or tar archive.

    Raises:
        InputError: the folder or archive can't be read, is damaged, or passes a limit.
    """
    return parse_entries(entries(path, caps))


def parse_entries(found: Iterable[Entry]) -> RecordSet:
    """Parse entries; what is not a record is kept with the reason."""
    records: list[Record] = []
    unreadable: list[tuple[str, str]] = []
    others: list[str] = []
    for entry in found:
        if entry.data is None:
            unreadable.append((entry.name, entry.refused))
        elif not entry.name.endswith(".json"):
            others.append(entry.name)
        else:
            try:
                records.append(parse_record(entry.name, entry.data))
            except InputError as err:
                unreadable.append((entry.name, err.what))
    records.sort(key=lambda record: record.name)
    return RecordSet(tuple(records), tuple(unreadable), tuple(others), _repeated(records))


def parse_record(name: str, data: bytes) -> Record:
    """Read one record.

    Args:
        name: Name in the folder or archive.
        data: The file's bytes: strict JSON (UTF-8, no duplicate keys, no NaN).

    Raises:
        InputError: it is not JSON, or not a run record.
    """
    value = loads_strict(data)
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        raise InputError("not a run record: no list of messages")
    if not isinstance(value.get("suite_name"), str):
        raise InputError("not a run record: no suite name")
    odd: list[str] = []
    messages = [item for item in value["messages"] if isinstance(item, dict)]
    if len(messages) != len(value["messages"]):
        odd.append("a message that is not an object")
    pipeline = _text(value, "pipeline_name", odd) or ""
    record = Record(
        name=name,
        configuration=pipeline,
        pipeline=pipeline,
        suite=value["suite_name"],
        user_task=_text(value, "user_task_id", odd) or "",
        injection_task=_text(value, "injection_task_id", odd),
        attack=_text(value, "attack_type", odd),
        security=_flag(value, "security", odd),
        utility=_flag(value, "utility", odd),
        error=_text(value, "error", odd),
        benchmark_version=_text(value, "benchmark_version", odd),
        package_version=_text(value, "agentdojo_package_version", odd),
        injections=_injections(value.get("injections"), odd),
        calls=tuple(_calls(messages, odd)),
        results=tuple(_results(messages, odd)),
        output=_output(messages),
        odd=tuple(sorted(set(odd))),
    )
    return _placed(record)


def content_text(content: object) -> str:
    r"""Return the text of a message's content in any of its three shapes.

    >>> content_text("a"), content_text(None), content_text([{"type": "text", "content": "b"}])
    ('a', '', 'b')
    """
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [item.get("content") for item in content if isinstance(item, dict)]
        return "\n".join(part for part in parts if isinstance(part, str))
    return ""


def _placed(record: Record) -> Record:
    """Take the configuration from `<folder>/<suite>/<user task>/<attack>/<injection task>.json`."""
    parts = record.name.removesuffix(".json").split("/")
    tail = [record.suite, record.user_task, record.attack or "none", record.injection_task]
    if len(parts) < 5 or parts[-4:] != [item or "none" for item in tail]:
        return record
    return replace(record, configuration=parts[-5])


def from_name(name: str, why: str) -> Record | None:
    """Return what the name of an unreadable file says of its record, if it has the layout."""
    parts = name.removesuffix(".json").split("/")
    if len(parts) < 5 or not name.endswith(".json"):
        return None
    configuration, suite, user_task, attack, injection_task = parts[-5:]
    return Record(
        name=name,
        configuration=configuration,
        pipeline="",
        suite=suite,
        user_task=user_task,
        injection_task=None if injection_task == "none" else injection_task,
        attack=None if attack == "none" else attack,
        security=None,
        utility=None,
        error=None,
        benchmark_version=None,
        package_version=None,
        injections={},
        calls=(),
        results=(),
        output="",
        unreadable=why,
    )


def _repeated(records: list[Record]) -> tuple[str, ...]:
    seen: set[tuple[str | None, ...]] = set()
    again = []
    for record in records:
        key = case_key(record)
        if key in seen:
            again.append(record.name)
        seen.add(key)
    return tuple(again)


def case_key(record: Record) -> tuple[str | None, ...]:
    """Return what identifies a run: configuration, suite, user task, attack and injection task."""
    return (
        record.configuration,
        record.suite,
        record.user_task,
        record.attack,
        record.injection_task,
    )


def _text(value: dict[str, Any], key: str, odd: list[str]) -> str | None:
    found = value.get(key)
    if found is None or isinstance(found, str):
        return found
    odd.append(f"{key} is not text")
    return None


def _flag(value: dict[str, Any], key: str, odd: list[str]) -> bool | None:
    found = value.get(key)
    if isinstance(found, bool):
        return found
    odd.append(f"{key} is not true or false")
    return None


def _injections(value: object, odd: list[str]) -> dict[str, str]:
    if value is None:
        return {}
    if isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
        return value
    odd.append("injections are not texts")
    return {}


def _call(value: object, odd: list[str]) -> tuple[str, dict[str, Any]] | None:
    if isinstance(value, dict):
        function, args = value.get("function"), value.get("args")
        if isinstance(function, str) and isinstance(args, dict):
            return function, args
    odd.append("a tool call without a function name and arguments")
    return None


def _calls(messages: list[dict[str, Any]], odd: list[str]) -> Iterable[tuple[str, dict[str, Any]]]:
    for message in messages:
        asked = message.get("tool_calls")
        if message.get("role") != "assistant" or asked is None:
            continue
        if not isinstance(asked, list):
            odd.append("tool_calls is not a list")
            continue
        yield from (call for item in asked if (call := _call(item, odd)) is not None)


def _results(messages: list[dict[str, Any]], odd: list[str]) -> Iterable[ToolResult]:
    for message in messages:
        if message.get("role") != "tool":
            continue
        # A result of an unknown call is kept without a name: it may have changed the state.
        function, args = _call(message.get("tool_call"), odd) or ("", {})
        error = message.get("error")
        yield ToolResult(
            function,
            args,
            content_text(message.get("content")),
            None if error is None else str(error),
        )


def _output(messages: list[dict[str, Any]]) -> str:
    if messages and messages[-1].get("role") == "assistant":
        return content_text(messages[-1].get("content"))
    return ""
