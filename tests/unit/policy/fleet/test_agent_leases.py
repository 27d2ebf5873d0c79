"""Leases: who may open, use and end them, also after the engine has forgotten some."""

from datetime import UTC, datetime

import pytest

from rekindle.documents import events
from rekindle.formats import validation
from rekindle.policy.fleet import agent_leases
from rekindle.policy.fleet.agent_leases import LeaseRequest
from rekindle.policy.fleet.agent_registry import AgentDefinition, RegisteredAgent, append_events
from rekindle.policy.projection.projection import Projection

NOW = datetime(2026, 4, 9, 12, tzinfo=UTC)


@pytest.fixture
def granted() -> RegisteredAgent:
    definition = AgentDefinition(manifest="version: 1\n", pool="p", heartbeat_seconds=5)
    agent = RegisteredAgent(agent="a", definition=definition, projection=Projection(agent="a"))
    agent = append_events(agent, events.AgentCreated(ts=NOW, agent="a"))
    return agent_leases.grant_lease(agent)


def request(agent: RegisteredAgent, lease: str = "one", **more) -> LeaseRequest:
    return LeaseRequest(generation=agent.generation, lease=lease, host="h", **more)


def open_as(agent: RegisteredAgent, lease: str = "one", **more) -> RegisteredAgent:
    asked = request(agent, lease, **more)
    assert agent_leases.explain_refused_request(agent, asked) == ""
    return agent_leases.open_lease(agent, asked, NOW)[0]


def test_a_second_process_cannot_open_the_same_generation(granted):
    opened = open_as(granted)
    assert "another process" in agent_leases.explain_refused_request(
        opened, request(granted, "two")
    )


def test_a_host_may_open_its_lease_again(granted):
    opened = open_as(granted)
    assert open_as(opened).generation == opened.generation


def test_only_the_process_that_opened_a_lease_may_use_it(granted):
    opened = open_as(granted)
    assert agent_leases.explain_refused_lease(opened, opened.generation, "one") == ""
    why = agent_leases.explain_refused_lease(opened, opened.generation, "two")
    assert why == f"another process holds the lease of generation {opened.generation}"


def test_an_ended_lease_cannot_be_used_or_opened(granted):
    ended = agent_leases.release_lease(open_as(granted), is_gone=False)
    assert "has ended" in agent_leases.explain_refused_lease(ended, ended.generation, "one")
    assert "has ended" in agent_leases.explain_refused_request(ended, request(ended))


@pytest.mark.parametrize(("seen", "expected"), [(0, 1), (1, 2), (6, 7)])
def test_the_generation_rises_above_what_the_host_has_seen(granted, seen, expected):
    """A restored engine would otherwise grant the generations of forgotten leases again."""
    opened = open_as(granted, seen=seen)
    assert opened.generation == expected
    assert agent_leases.explain_refused_lease(opened, expected, "one") == ""
    if seen:
        assert "was replaced by" in agent_leases.explain_refused_lease(opened, seen, "old")


def test_a_lost_answer_does_not_raise_the_generation_twice(granted):
    asked = request(granted, seen=6)
    opened = agent_leases.open_lease(granted, asked, NOW)[0]
    assert agent_leases.explain_refused_request(opened, asked) == ""
    assert agent_leases.open_lease(opened, asked, NOW)[0].generation == 7


def test_a_lease_survives_a_new_run_of_its_workflow(granted):
    opened = open_as(granted)
    carried = validation.decode_json(validation.encode_json(opened), RegisteredAgent)
    assert agent_leases.explain_refused_lease(carried, opened.generation, "one") == ""
