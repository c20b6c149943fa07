"""The workspace environment of AgentDojo: as a run found it, and as its tool results left it.

Runs in the fresh interpreter (`impact_twin.audit.worker`), which has AgentDojo loaded. Tool results
are YAML text that strangers can write: it is read with the safe loader, capped in size and depth,
without aliases, and validated by AgentDojo's own models.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from impact_twin.audit.copies import Frozen

SUITES = ("workspace",)
MAX_TEXT = 1024 * 1024
MAX_DEPTH = 32

# AgentDojo's detector puts this in place of a tool's output (agent_pipeline/pi_detector.py).
REDACTION = "Data omitted because a prompt injection was detected"
# Its delimiting defence puts these around it (agent_pipeline/agent_pipeline.py).
OPENING, CLOSING = "<<", ">>"

# Tools whose result is the object they made or changed, and the collection it belongs to.
_RETURNS = {
    "send_email": ("inbox", "emails"),
    "create_calendar_event": ("calendar", "events"),
    "reschedule_calendar_event": ("calendar", "events"),
    "add_calendar_event_participants": ("calendar", "events"),
    "create_file": ("cloud_drive", "files"),
    "append_to_file": ("cloud_drive", "files"),
    "share_file": ("cloud_drive", "files"),
    "delete_file": ("cloud_drive", "files"),
}
# The part that each of the other changing tools changes; "" can't be read and changes nothing.
_ALSO = {"delete_email": "inbox", "get_unread_emails": "inbox", "cancel_calendar_event": "calendar"}
_STARTING = {
    "inbox": "initial_emails",
    "calendar": "initial_events",
    "cloud_drive": "initial_files",
}
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class Shown:
    """An object that a tool result showed: which result, and where it stands in the state."""

    result: int
    function: str
    part: str
    collection: str
    key: str


@dataclass(frozen=True)
class Missing:
    """A result that may have changed the state but does not show how.

    Attributes:
        result: Its place among the tool results, from 0.
        function: The tool.
        why: "redacted" or "unreadable".
    """

    result: int
    function: str
    why: str


class UnreadableError(Exception):
    """A tool result's text is not the YAML that the tool prints."""


class RedactedError(UnreadableError):
    """A detector took the tool result out of the conversation."""


def parse_result(text: str) -> Any:
    """Return the value that a tool result's text shows.

    Raises:
        RedactedError: the detector's notice stands in its place.
        UnreadableError: not YAML, too long, too deep, or with anchors.
    """
    if REDACTION in text and len(text) < 2 * len(REDACTION):
        raise RedactedError
    if text.startswith(OPENING) and text.endswith(CLOSING):
        text = text[len(OPENING) : -len(CLOSING)]
    if len(text) > MAX_TEXT:
        raise UnreadableError
    try:
        _check_events(text)
        return yaml.load(text, _LOADER)  # noqa: S506 - one of the two safe loaders
    # PyYAML's constructors raise what they happen to run into: AttributeError for `!!timestamp x`.
    except Exception:
        raise UnreadableError from None


def _check_events(text: str) -> None:
    depth = 0
    for event in yaml.parse(text, _LOADER):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise UnreadableError
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise UnreadableError
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


class StartingStates:
    """Builds the environment that injections make of a suite, as `TaskSuite` builds it.

    AgentDojo formats the whole YAML file with the injected texts and parses it. Here only the
    list items that hold a placeholder are formatted and parsed, which gives the same environment
    (a test compares) in a hundredth of the time; whatever that can't prove goes AgentDojo's way.
    """

    def __init__(self, suite: Any) -> None:
        from agentdojo.task_suite.task_suite import read_suite_file

        self._suite = suite
        self._defaults: dict[str, str] = suite.get_injection_vector_defaults()
        text = read_suite_file(suite.name, "environment.yaml", suite.data_path)
        self._plain = Frozen(suite.load_and_inject_default_environment({}))
        plain = yaml.load(text.format(**self._defaults), _LOADER)  # noqa: S506 - a safe loader
        self._items: dict[str, list[tuple[str, str, int, dict[str, Any]]]] = {}
        for item_text in _items_with_placeholders(text, self._defaults):
            self._learn(item_text, plain)

    def build(self, injections: Mapping[str, str]) -> Any:
        """Return a new environment with the injections in place.

        Raises:
            ValueError: AgentDojo could not have built it (an unknown vector, broken YAML).
        """
        unknown = set(injections) - set(self._defaults)
        if unknown:
            raise ValueError("an injection vector that the suite doesn't have")
        environment = self._plain.thaw()
        values = {**self._defaults, **injections}
        done: set[str] = set()
        for vector in injections:
            if vector not in self._items:
                return self._slowly(injections)
            for text, part, index, plain in self._items[vector]:
                if text in done:
                    continue
                done.add(text)
                if not _replace(environment, part, index, plain, text.format(**values)):
                    return self._slowly(injections)
        return environment

    def _slowly(self, injections: Mapping[str, str]) -> Any:
        try:
            return self._suite.load_and_inject_default_environment(dict(injections))
        except yaml.YAMLError:
            raise ValueError("the injections break the environment's YAML") from None

    def _learn(self, item_text: str, plain: dict[str, Any]) -> None:
        values = yaml.load(item_text.format(**self._defaults), _LOADER)  # noqa: S506 - a safe loader
        for part, collection in _STARTING.items():
            for index, item in enumerate(plain.get(part, {}).get(collection, [])):
                if values == [item]:
                    for vector in self._defaults:
                        if "{" + vector + "}" in item_text:
                            place = (item_text, part, index, item)
                            self._items.setdefault(vector, []).append(place)


def _items_with_placeholders(text: str, vectors: Mapping[str, str]) -> list[str]:
    """Cut the dumped YAML at its second-level list items; return those with a placeholder."""
    items: list[list[str]] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if line.startswith("  - "):
            items.append([line])
            inside = True
        elif inside and line.startswith("    "):
            items[-1].append(line)
        else:
            inside = False
    joined = ["".join(lines) for lines in items]
    return [item for item in joined if any("{" + vector + "}" in item for vector in vectors)]


_TEXT_FIELDS = frozenset({"body", "content", "description"})


def _replace(environment: Any, part: str, index: int, plain: dict[str, Any], text: str) -> bool:
    try:
        parsed = yaml.load(text, _LOADER)  # noqa: S506 - a safe loader
    except yaml.YAMLError:
        return False
    if not (isinstance(parsed, list) and len(parsed) == 1 and isinstance(parsed[0], dict)):
        return False
    item = parsed[0]
    if item.keys() != plain.keys():
        return False
    if any(item[key] != plain[key] for key in item.keys() - _TEXT_FIELDS):
        return False
    if not all(isinstance(item[key], str) for key in item.keys() & _TEXT_FIELDS):
        return False
    holder = getattr(environment, part)
    starting = getattr(holder, _STARTING[part])
    # Only a text differs from an object that is validated already; a file's size follows it.
    changed = {key: item[key] for key in item.keys() & _TEXT_FIELDS}
    if "content" in changed:
        new = type(starting[index]).model_validate(item)
    else:
        new = starting[index].model_copy(update=changed)
    starting[index] = new
    getattr(holder, _STARTING[part].removeprefix("initial_"))[new.id_] = new
    return True


def touched_parts(results: Iterable[Mapping[str, Any]]) -> set[str]:
    """Return the parts of the environment that `apply_results` would change."""
    functions = {result["function"] for result in results}
    parts = {_RETURNS[function][0] for function in functions & _RETURNS.keys()}
    return parts | {_ALSO[function] for function in functions & _ALSO.keys()}


def apply_results(
    environment: Any, results: Sequence[Mapping[str, Any]], replay: Any = None
) -> tuple[list[Shown], list[Missing]]:
    """Change an environment as the saved tool results show, in their order.

    Args:
        environment: The environment as the run found it; changed in place.
        results: Mappings with `result` (its place among the record's tool results, from 0),
            `function`, `args` and `text`. Calls that failed or change nothing are left out.
        replay: Called as `replay(function, args)` for each result that doesn't show what the call
            did; None leaves the state as it is there.

    Returns:
        The objects shown (those of replayed calls too), and the results that show nothing.
    """
    shown: list[Shown] = []
    missing: list[Missing] = []
    for result in results:
        index, function = result["result"], result["function"]
        try:
            where = _apply_one(environment, function, result["args"], result["text"])
        except UnreadableError as err:
            why = "redacted" if isinstance(err, RedactedError) else "unreadable"
            missing.append(Missing(index, function, why))
            where = None
            if replay is not None and function:
                made = replay(function, result["args"])
                part = _RETURNS.get(function)
                if part and hasattr(made, "id_"):
                    where = (*part, made.id_)
        if where is not None:
            shown.append(Shown(index, function, *where))
    return shown, missing


def _apply_one(
    environment: Any, function: str, args: Mapping[str, Any], text: str
) -> tuple[str, str, str] | None:
    if function in _RETURNS:
        part, collection = _RETURNS[function]
        made = _validated(environment, part, parse_result(text))
        holder = getattr(getattr(environment, part), collection)
        if function == "delete_file":
            holder.pop(made.id_, None)
            return None
        holder[made.id_] = made
        return part, collection, made.id_
    if not function:
        raise UnreadableError
    value = parse_result(text)
    if function == "delete_email":
        _delete_email(environment, args)
    elif function == "cancel_calendar_event":
        event = environment.calendar.events.get(str(args.get("event_id")))
        if event is None:
            raise UnreadableError
        event.status = type(event.status)("canceled")
    else:
        _mark_read(environment, value)
    return None


def _delete_email(environment: Any, args: Mapping[str, Any]) -> None:
    inbox, key = environment.inbox, str(args.get("email_id"))
    if key not in inbox.emails:
        # It deleted an email that no result showed.
        raise UnreadableError
    inbox.trash[key] = inbox.emails.pop(key)


def _mark_read(environment: Any, value: Any) -> None:
    for item in value if isinstance(value, list) else []:
        email = environment.inbox.emails.get(str(item.get("id_")) if isinstance(item, dict) else "")
        if email is not None:
            email.read = True


def _validated(environment: Any, part: str, value: Any) -> Any:
    starting = getattr(getattr(environment, part), _STARTING[part])
    if not isinstance(value, dict) or not starting:
        raise UnreadableError
    try:
        return type(starting[0]).model_validate(value)
    except (ValueError, TypeError, RecursionError):
        raise UnreadableError from None
