"""Play agents' lives with the real engine, and keep their histories: `just record-fleet`.

Histories of a release are never changed: a fleet has such histories when it is upgraded. A new
branch of the workflow gets its own life here.
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
from rekindle.documents import events
from rekindle.fleet.engine import agent_client
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.payload_converter import make_data_converter
from rekindle.formats.validation import Duration
from rekindle.policy.fleet.agent_registry import RegisteredAgent
from rekindle.policy.operator import answers
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import (
    QuestionSettings,
    RestartSettings,
    RuntimeSettings,
)
from rekindle.policy.supervision import run_moves as runs
from rekindle.policy.supervision.next_move import AgentLimits
from rekindle.system import clock

HISTORIES = Path(__file__).parent / "histories"
_QUICK = AgentLimits(
    runtime=RuntimeSettings(
        restart=RestartSettings(cooldown=Duration(0.1), max_cooldown=Duration(0.2), max_crashes=3)
    )
)


class Life:
    """One agent from its start to its end, as the operator sees it."""

    def __init__(self, agents: AgentClient, name: str) -> None:
        self._agents, self._name = agents, name

    async def begin(self, pool: str, most_events: int | None = None) -> None:
        wanted = definition(pool, limits=_QUICK, notifies=True)
        with pytest.MonkeyPatch.context() as patched:
            if most_events:
                patched.setattr(
                    agent_client,
                    "RegisteredAgent",
                    partial(RegisteredAgent, most_events=most_events),
                )
            await self._agents.begin(self._name, wanted)

    async def define(self, pool: str, limits: AgentLimits = _QUICK) -> None:
        await self._agents.define(self._name, definition(pool, limits=limits))

    async def say(self, *records) -> None:
        await self._agents.say(self._name, *records)

    async def run(self) -> None:
        await self.say(
            runs.make_desired_event((await self.known()).run, "running", clock.read_clock())
        )

    async def stop(self) -> None:
        await self.say(
            runs.make_desired_event((await self.known()).run, "stopped", clock.read_clock())
        )

    async def known(self) -> Projection:
        return (await self._agents.kept(self._name)).projection

    async def until(self, holds) -> None:
        async with asyncio.timeout(60):
            while not holds(await self._agents.kept(self._name)):  # noqa: ASYNC110 - of another program
                await asyncio.sleep(0.05)

    async def until_over(self) -> None:
        await self.until(lambda kept: kept.projection.run.is_over and kept.lease is None)

    async def until_safe(self) -> None:
        await self.until(lambda kept: kept.projection.run.is_safe and kept.lease is None)

    async def ask_for_brief(self) -> None:
        await self._agents.ask_for_brief(self._name)

    async def remove(self) -> None:
        await self._agents.remove(self._name)


async def cycles(life: Life, hosts: Hosts) -> None:
    """Play three cycles and the end of the run, then another run of two."""
    await life.run()
    await life.until_over()
    await life.run()
    await life.until_over()


async def faults(life: Life, hosts: Hosts) -> None:
    """Play a dead host, a full one, one without the program; a crash, a limit."""
    await life.run()
    await life.until_over()


async def person(life: Life, hosts: Hosts) -> None:
    """Play safe mode and a restart, a stop and a run, an answer, and briefs."""
    await life.run()
    await life.until_safe()
    await life.say(events.RestartRequested(ts=clock.read_clock()))
    await hosts.done.wait()
    await life.say(events.HandoffRequested(ts=clock.read_clock()))
    await life.ask_for_brief()
    await life.until(lambda kept: "brief" in kept.projection.documents)
    await life.remove()


async def hopeless(life: Life, hosts: Hosts) -> None:
    """Play an agent that no host can start: safe mode, stop, a brief, removal."""
    await life.run()
    await life.until_safe()
    await life.stop()
    await life.ask_for_brief()
    await life.until(lambda kept: "brief" in kept.projection.documents)
    await life.remove()


async def unlucky(life: Life, hosts: Hosts) -> None:
    """Play a crash, then a dead host: the next host reports how that launch ended."""
    await life.run()
    await life.until_over()


async def carried(life: Life, hosts: Hosts) -> None:
    """Play runs that are carried over again and again."""
    await life.run()
    await life.until_over()


async def asked(life: Life, hosts: Hosts) -> None:
    """Play two questions: a person answers the first, and the second expires."""
    runtime = msgspec.structs.replace(
        _QUICK.runtime, questions=QuestionSettings(deadline=Duration(3))
    )
    await life.define("pool-asked", AgentLimits(runtime=runtime))
    await life.run()
    await life.until_safe()
    known = await life.known()
    [question] = known.questions.values()
    await life.say(answers.make_answer(known, question, "retry", clock.read_clock()))
    await life.until(lambda kept: len(kept.projection.answers) == 2)


async def redefined(life: Life, hosts: Hosts) -> None:
    """Play a new definition between two runs, which is listed at once."""
    await life.run()
    await life.until_over()
    await life.define("pool-redefined", AgentLimits())
    await life.run()
    await life.until_over()


LIVES = {
    cycles: ["cycle", "cycle", "last", "cycle", "last"],
    faults: ["cycle", "die", "full", "fail", "crash", "limit", "cycle", "last"],
    person: ["auth", "cycle", "wait"],
    hopeless: ["fail", "fail", "fail"],
    unlucky: ["crash", "die", "cycle", "last"],
    carried: ["cycle"] * 4 + ["last"],
    asked: ["auth", "auth", "wait"],
    redefined: ["last", "last"],
}


async def play(address: str, names: Sequence[str]) -> dict[str, str]:
    """Return the histories of these lives, or of all, as JSON."""
    engine = await Client.connect(address, data_converter=make_data_converter(()))
    found = {}
    for life, script in LIVES.items():
        name = life.__name__
        if names and name not in names:
            continue
        hosts = Hosts(engine, f"pool-{name}", script)
        agent = Life(AgentClient(engine), name)
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
    """Remove everything that only shows where it was recorded."""
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
