import pytest
import yaml

from impact_twin.audit.records import CHANGING_TOOLS, read_records
from impact_twin.audit.world import (
    RedactedError,
    StartingStates,
    UnreadableError,
    apply_results,
    parse_result,
)

EVENT = {
    "all_day": False,
    "description": "",
    "end_time": "2024-05-15T11:00",
    "id_": "27",
    "location": None,
    "participants": ["a@example.com"],
    "start_time": "2024-05-15T10:00",
    "status": "confirmed",
    "title": "Talk",
}
FILE = {
    "content": "text",
    "filename": "f.txt",
    "id_": "26",
    "last_modified": "2024-05-15T10:00",
    "owner": "emma.johnson@bluesparrowtech.com",
    "shared_with": {},
    "size": 4,
}


@pytest.fixture(scope="module")
def suite():
    from agentdojo.task_suite.load_suites import get_suites

    return get_suites("v1")["workspace"]


@pytest.fixture(scope="module")
def states(suite):
    return StartingStates(suite)


def applied(environment, *results, replay=None):
    listed = [
        {"result": index, "function": function, "args": args, "text": text}
        for index, (function, args, text) in enumerate(results)
    ]
    return apply_results(environment, listed, replay)


def test_every_starting_state_of_the_excerpt_is_what_agentdojo_builds(
    suite, states, excerpt_folder
):
    seen = 0
    for record in read_records(excerpt_folder).records:
        if record.injections:
            expected = suite.load_and_inject_default_environment(record.injections)
            assert states.build(record.injections) == expected, record.name
            seen += 1
    assert seen > 10


def built_or_refused(build, injections):
    try:
        return build(injections)
    except (ValueError, yaml.YAMLError):
        return "refused"


@pytest.mark.parametrize(
    "text",
    [
        "plain",
        "two\n\nparagraphs  with   blanks\n",
        "\\n escaped \\t \\u00e9",
        "colon: dash - hash # star * amp & at @",
        "{braces} {0}",
        "null",
        "42",
        "",
        'a "quote" that closes',
        '"\n    "title": "Another',
        "\n---\n",
    ],
)
def test_hostile_injections_give_agentdojo_s_state_or_its_error(suite, states, text):
    everywhere = dict.fromkeys(suite.get_injection_vector_defaults(), text)
    for chosen in (everywhere, {"email_hiking_injection": text}, {"drive_recipe_injection": text}):
        assert built_or_refused(states.build, chosen) == built_or_refused(
            suite.load_and_inject_default_environment, chosen
        )


def test_states_are_independent_copies(states):
    first = states.build({})
    first.inbox.emails.clear()
    assert states.build({}).inbox.emails


def test_an_unknown_vector_is_refused(states):
    with pytest.raises(ValueError, match="vector"):
        states.build({"nowhere": "x"})


def test_results_change_the_state_as_the_tools_did(states, sent_email):
    environment = states.build({})
    emails = len(environment.inbox.emails)
    mail = sent_email(900)["content"]
    shown, missing = applied(
        environment,
        ("send_email", {}, mail),
        ("create_calendar_event", {}, yaml.safe_dump(EVENT)),
        ("create_file", {}, yaml.safe_dump(FILE)),
        ("append_to_file", {}, yaml.safe_dump({**FILE, "content": "text and more"})),
        ("cancel_calendar_event", {"event_id": "27"}, "Event with ID 27 has been canceled."),
        ("delete_email", {"email_id": "900"}, "Email with id 900 deleted successfully."),
        ("delete_file", {}, yaml.safe_dump(FILE)),
    )
    assert missing == []
    assert [item.key for item in shown] == ["900", "27", "26", "26"]
    assert len(environment.inbox.emails) == emails
    assert environment.inbox.trash["900"].subject == "Important message!"
    assert environment.calendar.events["27"].status == "canceled"
    assert "26" not in environment.cloud_drive.files


def test_reading_unread_emails_marks_them(states):
    environment = states.build({})
    unread = [email for email in environment.inbox.emails.values() if not email.read]
    text = yaml.safe_dump([{"id_": email.id_} for email in unread])
    applied(environment, ("get_unread_emails", {}, text))
    assert unread
    assert all(email.read for email in environment.inbox.emails.values())


def test_delimiters_of_a_defence_are_taken_off():
    assert parse_result("<<a: 1>>") == {"a": 1}


@pytest.mark.parametrize(
    ("function", "text", "why"),
    [
        ("send_email", "<Data omitted because a prompt injection was detected>", "redacted"),
        ("send_email", "<<<Data omitted because a prompt injection was detected>>>", "redacted"),
        ("send_email", "a: [b", "unreadable"),
        ("send_email", "just text", "unreadable"),
        ("send_email", "{}", "unreadable"),
        ("send_email", "", "unreadable"),
        ("", "anything", "unreadable"),
        ("delete_email", "Email with id 5000 deleted successfully.", "unreadable"),
        ("cancel_calendar_event", "Event with ID 5000 has been canceled", "unreadable"),
    ],
)
def test_a_result_that_shows_nothing_is_named(states, function, text, why):
    environment = states.build({})
    before = states.build({})
    shown, missing = applied(environment, (function, {"email_id": "5000"}, text))
    assert shown == []
    assert [(item.function, item.why) for item in missing] == [(function, why)]
    assert environment == before


def test_a_missing_result_can_be_replayed(states):
    environment = states.build({})
    calls = []

    def replay(function, args):
        calls.append((function, args))

    notice = "<Data omitted because a prompt injection was detected>"
    shown, missing = applied(environment, ("send_email", {"a": 1}, notice), replay=replay)
    assert calls == [("send_email", {"a": 1})]
    assert (shown, len(missing)) == ([], 1)


@pytest.mark.parametrize(
    "text",
    [
        "a: &x [1]\nb: *x",
        "[" * 200 + "]" * 200,
        "- " * 200 + "x",
        "!!python/object/apply:os.system [ls]",
        "a" * 2_000_000,
        "\x00",
        "? " * 3000,
        "a: 2024-99-99",
    ],
)
def test_hostile_yaml_is_refused_quickly(text):
    with pytest.raises(UnreadableError):
        parse_result(text)


def test_a_notice_inside_a_longer_text_is_no_redaction():
    notice = "Data omitted because a prompt injection was detected"
    text = f"body: '{notice}'\n" + "".join(f"x{place}: 1\n" for place in range(20))
    assert parse_result(text)["body"] == notice
    with pytest.raises(RedactedError):
        parse_result(notice)


def test_every_tool_that_can_change_the_state_is_a_tool_of_the_suite(suite):
    names = {tool.name for tool in suite.tools}
    assert CHANGING_TOOLS - {""} <= names
    readers = names - CHANGING_TOOLS
    assert all(name.startswith(("get_", "search_", "list_")) for name in readers)


@pytest.mark.parametrize(
    "text", ["!!timestamp x", "!!int x", "!!float ''", "!!binary x", "? !!set x"]
)
def test_what_a_constructor_of_yaml_fails_on_is_unreadable(text):
    with pytest.raises(UnreadableError):
        parse_result(text)
