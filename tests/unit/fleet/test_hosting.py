"""The line between a worker and the process of a cycle."""

import asyncio
from multiprocessing import Pipe

import pytest

from rekindle.fleet.hosting import Attended
from rekindle.fleet.wire import Failed
from rekindle.fleet.workflow import Ran


@pytest.mark.timeout(10)
def test_a_line_that_is_said_to_be_readable_keeps_nobody_waiting():
    """While a message is read the loop says so once more: nothing is there then."""

    async def main() -> None:
        ours, theirs = Pipe()
        attended = Attended(None, ours)
        theirs.send(Ran(1))
        assert await attended.receive() == Ran(1)
        attended._heard.set()
        waiting = asyncio.create_task(attended.receive())
        assert not (await asyncio.wait({waiting}, timeout=0.1))[0]
        theirs.send(Ran(2))
        theirs.send(Ran(3))
        assert await waiting == Ran(2)
        assert await attended.receive() == Ran(3)
        theirs.close()
        assert isinstance(await attended.receive(), Failed)
        asyncio.get_running_loop().remove_reader(ours.fileno())
        ours.close()

    asyncio.run(main())
