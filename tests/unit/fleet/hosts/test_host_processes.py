"""The line between a worker and the process of a cycle."""

import asyncio
import signal
from multiprocessing import Pipe, get_context

import pytest

from rekindle.fleet.agent.host_orders import HostResult
from rekindle.fleet.hosts.host_messages import ProcessFailure
from rekindle.fleet.hosts.host_processes import HostProcess


@pytest.mark.timeout(10)
def test_a_line_that_is_reported_as_readable_does_not_block():
    """While a message is read, the loop reports its line again, and nothing is left to read."""

    async def main() -> None:
        ours, theirs = Pipe()
        attended = HostProcess(None, ours)
        theirs.send(HostResult(1))
        assert await attended.receive() == HostResult(1)
        attended._heard.set()
        waiting = asyncio.create_task(attended.receive())
        assert not (await asyncio.wait({waiting}, timeout=0.1))[0]
        theirs.send(HostResult(2))
        theirs.send(HostResult(3))
        assert await waiting == HostResult(2)
        assert await attended.receive() == HostResult(3)
        theirs.close()
        assert isinstance(await attended.receive(), ProcessFailure)
        asyncio.get_running_loop().remove_reader(ours.fileno())
        ours.close()

    asyncio.run(main())


def ends_at_the_second(line) -> None:
    """End as a cycle does: the first signal asks it to end in order, which takes long here."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup
    heard = []
    signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    line.send(HostResult(1))
    while len(heard) < 2:
        signal.pause()


@pytest.mark.timeout(30)
def test_a_process_that_has_lost_its_agent_is_told_twice(monkeypatch):
    """The second signal follows soon, not after the time in which a process has to end."""
    monkeypatch.setattr("rekindle.fleet.hosts.host_processes.STOP_SECONDS", 3600.0)

    async def main() -> None:
        context = get_context("fork")
        ours, theirs = context.Pipe()
        process = context.Process(target=ends_at_the_second, args=(theirs,))
        process.start()
        theirs.close()
        attended = HostProcess(process, ours)
        assert await attended.receive() == HostResult(1)
        assert await attended.end(), "it had to be killed"

    asyncio.run(main())
