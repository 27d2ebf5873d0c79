"""Queries for the engine's list of agents: no value changes what a query selects."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest

from rekindle.errors import UsageError
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.agent_list import AgentFilter, render_changes, render_filter
from rekindle.policy.settings.runtime_settings import FLEET_RPC_SECONDS

CLIENT = SimpleNamespace(namespace="default")
ATTACK = 'x" OR RekindleTeam!="x'


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("team", ATTACK),
        ("team", "Blue"),
        ("team", 5),
        ("pool", ATTACK),
        ("host", ATTACK),
        ("host", "a\\"),
        ("host", "a\n"),
        ("host", 5),
        ("state", "bogus"),
    ],
)
def test_an_invalid_value_is_refused(field, value):
    with pytest.raises(UsageError) as refused:
        render_filter(CLIENT, AgentFilter(**{field: value}))
    assert repr(value) in str(refused.value)
    assert refused.value.hint


def test_a_watch_refuses_an_invalid_team():
    with pytest.raises(UsageError, match="team"):
        render_changes(datetime.now(UTC), ATTACK)


def test_names_select_their_agents():
    query = render_filter(CLIENT, AgentFilter(team="", pool="gpu", host="host 1.example.org"))
    assert query.endswith(
        'RekindleTeam="-" AND RekindlePool="gpu" AND RekindleHost="host 1.example.org"'
    )


def test_a_command_does_not_wait_as_long_as_a_program():
    """Someone waits for `rekindle status`, even if the engine is silent."""
    asked = []

    class Engine:
        namespace = "default"

        async def list_workflows(self, query, *, rpc_timeout):
            asked.append(rpc_timeout)
            return
            yield

    async def read(*patience):
        return [listed async for listed in AgentClient(Engine(), *patience).listed()]

    assert asyncio.run(read()) == asyncio.run(read(timedelta(seconds=99))) == []
    assert asked == [timedelta(seconds=FLEET_RPC_SECONDS), timedelta(seconds=99)]
