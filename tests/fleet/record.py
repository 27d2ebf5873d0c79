"""Play agents' lives with the real engine, and keep their histories: `just record-fleet`.

Once a release has them they are never changed: what runs on a fleet when it is upgraded has such a
history. A new turn that a workflow may take gets a life of its own here.
"""

import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from temporalio.client import Client

from fleet.engine import Engine
from fleet.scripted import Hosts, definition
from rekindle import __version__
from rekindle.documents import event as events
from rekindle.documents.shape import Duration
from rekindle.fleet import client
from rekindle.fleet.client import Agents
from rekindle.fleet.converter import data_converter
from rekindle.policy import questions
from rekindle.policy import run as runs
from rekindle.policy.fold import Projection
from rekindle.policy.register import Kept
from rekindle.policy.settings import Questions, Restart, Runtime
from rekindle.policy.supervise import Limits
from rekindle.system import clock

HISTORIES = Path(__file__).parent / "histories"
_QUICK = Limits(
    runtime=Runtime(
        restart=Restart(cooldown=Duration(0.1), max_cooldown=Duration(0.2), max_crashes=3)
    )
)


class Life:
    """One agent, from its beginning to its end, as the operator sees it."""

    def __init__(self, agents: Agents, name: str) -> None:
        self._agents, self._name = agents, name

    async def begin(self, pool: str, most_events: int | None = None) -> None:
        wanted = definition(pool, limits=_QUICK, notifies=True)
        with pytest.MonkeyPatch.context() as patched:
            if most_events:
                patched.setattr(client, "Kept", partial(Kept, most_events=most_events))
            await self._agents.begin(self._name, wanted)

    async def define(self, pool: str, limits: Limits = _QUICK) -> None:
        await self._agents.define(self._name, definition(pool, limits=limits))

    async def say(self, *records) -> None:
        await self._agents.say(self._name, *records)

    async def run(self) -> None:
        await self.say(runs.say((await self.known()).run, "running", clock.now()))

    async def stop(self) -> None:
        await self.say(runs.say((await self.known()).run, "stopped", clock.now()))

    async def known(self) -> Projection:
        return (await self._agents.kept(self._name)).projection

    async def until(self, holds) -> None:
        async with asyncio.timeout(60):
            while not holds(await self._agents.kept(self._name)):  # noqa: ASYNC110 - of another program
                await asyncio.sleep(0.05)

    async def until_over(self) -> None:
        await self.until(lambda kept: kept.projection.run.is_over and not kept.is_leased)

    async def until_safe(self) -> None:
        await self.until(lambda kept: kept.projection.run.is_safe and not kept.is_leased)

    async def ask_for_brief(self) -> None:
        await self._agents.ask_for_brief(self._name)

    async def remove(self) -> None:
        await self._agents.remove(self._name)


async def cycles(life: Life, hosts: Hosts) -> None:
    """Three cycles, the run is done, another run of two."""
    await life.run()
    await life.until_over()
    await life.run()
    await life.until_over()


async def faults(life: Life, hosts: Hosts) -> None:
    """A host that dies, one that is full, one that lacks the program; a crash, a limit."""
    await life.run()
    await life.until_over()


async def person(life: Life, hosts: Hosts) -> None:
    """Safe mode and a restart, a stop and a run, an answer, a brief, while running and idle."""
    await life.run()
    await life.until_safe()
    await life.say(events.RestartAsked(ts=clock.now()))
    await hosts.done.wait()
    await life.say(events.HandoffAsked(ts=clock.now()))
    await life.ask_for_brief()
    await life.until(lambda kept: "brief" in kept.projection.documents)
    await life.remove()


async def hopeless(life: Life, hosts: Hosts) -> None:
    """No host can begin: safe mode; stopped, then a brief, then removed."""
    await life.run()
    await life.until_safe()
    await life.stop()
    await life.ask_for_brief()
    await life.until(lambda kept: "brief" in kept.projection.documents)
    await life.remove()


async def unlucky(life: Life, hosts: Hosts) -> None:
    """A crash, then a host that dies: how that launch ended is for the next one to say."""
    await life.run()
    await life.until_over()


async def carried(life: Life, hosts: Hosts) -> None:
    """Carried over into another run, again and again."""
    await life.run()
    await life.until_over()


async def asked(life: Life, hosts: Hosts) -> None:
    """Two questions: a person answers the first, and the second expires."""
    runtime = msgspec.structs.replace(_QUICK.runtime, questions=Questions(deadline=Duration(3)))
    await life.define("pool-asked", Limits(runtime=runtime))
    await life.run()
    await life.until_safe()
    known = await life.known()
    [question] = known.questions.values()
    await life.say(questions.answer_with(known, question, "retry", clock.now()))
    await life.until(lambda kept: len(kept.projection.answers) == 2)


LIVES = {
    cycles: ["cycle", "cycle", "last", "cycle", "last"],
    faults: ["cycle", "die", "full", "fail", "crash", "limit", "cycle", "last"],
    person: ["auth", "cycle", "wait"],
    hopeless: ["fail", "fail", "fail"],
    unlucky: ["crash", "die", "cycle", "last"],
    carried: ["cycle"] * 4 + ["last"],
    asked: ["auth", "auth", "wait"],
}


async def play(address: str, names: Sequence[str]) -> dict[str, str]:
    """Return the histories of these lives, or of all, as JSON."""
    engine = await Client.connect(address, data_converter=data_converter(()))
    found = {}
    for life, script in LIVES.items():
        name = life.__name__
        if names and name not in names:
            continue
        hosts = Hosts(engine, f"pool-{name}", script)
        agent = Life(Agents(engine), name)
        async with hosts.working():
            shortest = 60 if life is carried else None
            await agent.begin(f"pool-{name}", shortest)
            await life(agent, hosts)
            last = await engine.get_workflow_handle(f"default/{name}").fetch_history()
            first = last.events[0].workflow_execution_started_event_attributes
            run = first.first_execution_run_id
            history = await engine.get_workflow_handle(
                f"default/{name}", run_id=run
            ).fetch_history()
        text = json.dumps(plain(json.loads(history.to_json())), separators=(",", ":"))
        found[name] = re.sub(rf"\d+@{re.escape(os.uname().nodename)}", "1@host", text)
    return found


def plain(found: Any) -> Any:
    """Without what only says where it was recorded."""
    if isinstance(found, list):
        return [plain(one) for one in found]
    if not isinstance(found, dict):
        return found
    kept = {key: plain(value) for key, value in found.items() if key != "stackTrace"}
    return kept | ({"identity": "host"} if "identity" in kept else {})


def main() -> None:
    folder = HISTORIES / __version__
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place, Engine(Path(place)) as engine:
        for name, text in asyncio.run(play(engine.address, sys.argv[1:])).items():
            (folder / f"{name}.json").write_text(text + "\n")
            print(f"{folder.name}/{name}.json: {len(text):,} bytes")


if __name__ == "__main__":
    sys.exit(main())
