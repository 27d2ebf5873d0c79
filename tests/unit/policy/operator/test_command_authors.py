"""The users who give commands to a fleet."""

from datetime import UTC, datetime

import pytest

from rekindle.documents import events
from rekindle.policy.fleet.agent_registry import OPERATOR_EVENTS
from rekindle.policy.operator.command_authors import name_author, sign_command

AT = datetime(2026, 4, 9, 1, 0, tzinfo=UTC)
_LOOPS = {events.LoopAdded, events.LoopResolved}


def test_every_command_but_those_about_loops_has_an_author():
    for kind in set(OPERATOR_EVENTS) - _LOOPS:
        assert "by" in kind.__struct_fields__, kind


def test_a_command_gets_its_author():
    signed = sign_command(events.DesiredSet(ts=AT, desired="stopped"), "ann@box")
    assert signed.by == "ann@box"
    answer = events.QuestionAnswered(ts=AT, question="q", effect="retry", by="ann")
    assert sign_command(answer, "ann@box").by == "ann@box"


def test_an_event_without_an_author_stays_as_it_is():
    loop = events.LoopResolved(ts=AT, id="l", reason="done")
    assert sign_command(loop, "ann@box") is loop


@pytest.mark.parametrize(("by", "name"), [("", "you"), ("ann", "you"), ("ann@box", "ann@box")])
def test_only_a_fleet_names_the_author(by, name):
    assert name_author(by) == name
