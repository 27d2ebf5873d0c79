"""A host's order to attend: what the engine learns when it ends."""

import asyncio
from types import SimpleNamespace

import pytest
from temporalio.activity import _CompleteAsyncError
from temporalio.testing import ActivityEnvironment

from rekindle.fleet.agent.host_orders import HostReport, VouchedLease
from rekindle.fleet.hosts.host_presence import HostPresence, Vouched

LEASE = VouchedLease("default/a", "one")


@pytest.fixture
def presence():
    about = HostReport(
        beat=0, host="h", place="here", pool="p", slots=1, build="1", heartbeat_seconds=0.2
    )
    client = SimpleNamespace(namespace="default")
    return HostPresence(client, about, lambda _: None)


def attend(presence, end):
    """Attend until `end` is called; return what the engine is told."""

    async def run():
        presence._vouched[LEASE.lease] = Vouched(LEASE)
        attending = asyncio.create_task(ActivityEnvironment().run(presence.attend))
        while presence._token is None:  # noqa: ASYNC110 - set by the task
            await asyncio.sleep(0)
        end()
        return await asyncio.wait_for(attending, 60)

    return asyncio.run(run())


def test_a_host_that_leaves_names_the_leases_that_it_leaves_behind(presence):
    assert attend(presence, presence.leave) == [LEASE]


def test_a_host_that_was_given_up_does_not_end_the_order(presence):
    """A restored engine still has the order. Its end would hide the leases it knows."""
    with pytest.raises(_CompleteAsyncError):
        attend(presence, presence._lose_all)
