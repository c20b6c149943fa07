import pytest
from pydantic import BaseModel

from impact_twin.audit.copies import Frozen, shareable


class Part(BaseModel):
    items: list[int]


class World(BaseModel):
    inbox: Part
    calendar: Part


@pytest.fixture
def world():
    return World(inbox=Part(items=[1]), calendar=Part(items=[2]))


def test_a_copy_is_equal_and_independent(world):
    frozen = Frozen(world)
    copy = frozen.thaw()
    assert copy == world
    copy.inbox.items.append(9)
    copy.calendar.items.append(9)
    assert frozen.thaw() == world


def test_a_later_change_of_the_original_does_not_reach_copies(world):
    frozen = Frozen(world)
    world.inbox.items.append(9)
    assert frozen.thaw().inbox.items == [1]


def test_a_shared_part_is_the_same_object_unless_it_is_asked_apart(world):
    frozen = Frozen(world, ["calendar"])
    assert frozen.thaw() == world
    assert frozen.thaw().calendar is world.calendar
    apart = frozen.thaw(["calendar"])
    apart.calendar.items.append(9)
    assert world.calendar.items == [2]
    assert frozen.thaw().inbox is not world.inbox


@pytest.mark.parametrize(
    ("names", "parts"),
    [
        (["inbox", "items"], {"calendar"}),
        ([], {"inbox", "calendar"}),
        (["inbox", "getattr"], set()),
        (["__dict__"], set()),
    ],
)
def test_only_parts_that_no_name_reaches_are_shareable(names, parts):
    assert shareable(World, names) == parts


def test_the_email_rules_share_calendar_and_drive_and_see_the_inbox():
    from agentdojo.task_suite.load_suites import get_suites

    from impact_twin.audit.sources import Sources

    suite = get_suites("v1.2.2")["workspace"]
    sources = Sources()
    for number in (0, 3, 4, 5):
        rule = type(suite.injection_tasks[f"injection_task_{number}"])
        names = sources.of_rule(rule).names
        assert shareable(suite.environment_type, names) == {"calendar", "cloud_drive"}
    rule = type(suite.injection_tasks["injection_task_11"])
    assert shareable(suite.environment_type, sources.of_rule(rule).names) == {"calendar"}
