"""An agent's workflow, with the real engine and scripted hosts."""

import asyncio
import itertools

import pytest
from temporalio.client import Client

from fleet.engine import Engine
from fleet.record import Life
from fleet.scripted import Hosts
from rekindle.documents import events
from rekindle.fleet.engine.agent_client import AgentClient
from rekindle.fleet.engine.payload_converter import make_data_converter
from rekindle.formats.validation import Duration
from rekindle.policy.operator import answers
from rekindle.policy.settings.runtime_settings import (
    QuestionSettings,
    RuntimeSettings,
)
from rekindle.policy.supervision.next_move import AgentLimits
from rekindle.system import clock

pytestmark = pytest.mark.timeout(300)


def lived(address: str, name: str, script: list[str], life) -> None:
    """Run an agent with its hosts until the expected event."""

    async def live() -> None:
        client = await Client.connect(address, data_converter=make_data_converter(()))
        hosts = Hosts(client, f"pool-{name}", script)
        agent = Life(AgentClient(client), name)
        async with hosts.working():
            await agent.begin(f"pool-{name}")
            await life(agent, hosts)

    asyncio.run(asyncio.wait_for(live(), 90))


def test_a_cycle_with_more_facts_than_the_engine_takes_at_once_continues(tmp_path):
    """The workflow continues as a new run in the middle of the cycle, under the same lease."""
    with Engine(tmp_path, settings=["history.maxTotalUpdates=40"]) as engine:

        async def life(agent: Life, hosts: Hosts) -> None:
            await agent.run()
            await agent.until_over()
            known = await agent.known()
            assert hosts.is_continued.is_set()
            assert len(known.attempts) == 1
            assert (known.cycle_ended, known.run.ended.why) == (1, "done")

        lived(engine.address, "talks", ["talk"], life)


def test_a_host_that_dies_while_a_brief_is_written_is_followed_at_once(engine):
    async def life(agent: Life, hosts: Hosts) -> None:
        hosts.is_deaf = True
        await agent.run()
        await agent.until(lambda kept: kept.projection.attempts)
        await agent.ask_for_brief()
        await hosts.is_brief_begun.wait()
        await agent.until(lambda kept: kept.generation >= 2 and kept.lease is not None)

    lived(engine.address, "briefed", ["die later", "wait"], life)


def test_a_message_that_cannot_be_sent_delays_nothing(engine):
    async def life(agent: Life, hosts: Hosts) -> None:
        hosts.is_deaf = True
        await agent.run()
        await agent.until_safe()
        await agent.say(events.RestartRequested(ts=clock.read_clock()))
        await hosts.done.wait()

    lived(engine.address, "unheard", ["auth", "wait"], life)


def test_a_question_is_answered_once(engine):
    async def life(agent: Life, hosts: Hosts) -> None:
        await agent.run()
        await agent.until_safe()
        known = await agent.known()
        [asked] = known.questions.values()
        assert (asked.about, asked.choices) == ("auth", ("retry", "stop"))
        words = ("retry", "stop")
        given = [answers.make_answer(known, asked, one, clock.read_clock()) for one in words]
        await agent.say(*given)
        await hosts.done.wait()
        known = await agent.known()
        assert (known.answers[asked.question].choice, known.run.desired) == ("retry", "running")

    lived(engine.address, "asks", ["auth", "wait"], life)


@pytest.mark.parametrize(
    ("turn", "choice", "state"), [("billing", "stop", "stopped"), ("auth", "retry", "running")]
)
def test_a_question_without_an_answer_gets_its_default(engine, turn, choice, state):
    limits = AgentLimits(runtime=RuntimeSettings(questions=QuestionSettings(deadline=Duration(1))))

    async def life(agent: Life, hosts: Hosts) -> None:
        await agent.define(f"pool-unanswered-{turn}", limits)
        await agent.run()
        await agent.until(lambda kept: kept.projection.answers)
        known = await agent.known()
        [answer] = known.answers.values()
        assert (answer.choice, answer.origin) == (choice, "deadline")
        assert known.run.desired == state
        assert not hosts.done.is_set()

    lived(engine.address, f"unanswered-{turn}", [turn, "wait"], life)


def test_a_launch_without_an_end_is_not_waited_for(engine):
    """After a crash it would count as a second one in a row, and its pause would never end."""

    async def life(agent: Life, hosts: Hosts) -> None:
        await agent.run()
        await agent.until_over()
        known = await agent.known()
        assert {one.exit for one in known.attempts.values()} == {"crash", "lost", "clean"}

    lived(engine.address, "unlucky-again", ["crash", "die", "last"], life)


@pytest.mark.parametrize("turn", ["fenced", "fenced later"])
def test_a_lease_that_is_lost_again_and_again_without_another_owner_needs_a_person(engine, turn):
    """One loss may be a late host; more would be retried for ever, at the owner's cost."""

    async def life(agent: Life, hosts: Hosts) -> None:
        await agent.run()
        await agent.until_safe()
        assert "another host has it" in (await agent.known()).run.safe.words

    lived(engine.address, f"nobody-s-{turn.replace(' ', '-')}", [turn] * 9, life)


def test_a_failing_host_does_not_keep_an_agent_from_the_others(engine):
    """It always answers first, because it has nothing to do."""

    async def life(agent: Life, hosts: Hosts) -> None:
        hosts.broken, hosts.offers = "a", itertools.cycle("aaaab")
        await agent.run()
        await agent.until_over()
        known = await agent.known()
        assert (known.cycle_ended, known.moved.host) == (2, "pool-shunned-b")

    lived(engine.address, "shunned", ["cycle", "last"], life)


@pytest.mark.parametrize("trouble", ["full", "fail"])
def test_unpushed_work_waits_for_its_host(engine, trouble, monkeypatch):
    """Without a push the next host would begin with nothing."""
    monkeypatch.setattr("rekindle.policy.settings.runtime_settings.FLEET_SLOT_SECONDS", 0.5)

    async def life(agent: Life, hosts: Hosts) -> None:
        await agent.run()
        await agent.until_over()
        known = await agent.known()
        assert known.cycle_ended == 2
        assert known.moved.previous == ""

    lived(engine.address, f"alone-{trouble}", ["cycle", trouble, "last"], life)


@pytest.mark.parametrize("is_leased", [False, True])
def test_an_agent_moves_to_another_pool(engine, is_leased):
    """It moves when its running cycle has ended."""
    name = f"moves-{is_leased}".lower()

    async def life(agent: Life, hosts: Hosts) -> None:
        await agent.run()
        if is_leased:
            await agent.until(lambda kept: kept.projection.attempts)
        else:
            await agent.until_over()
        client = await Client.connect(engine.address, data_converter=make_data_converter(()))
        there = Hosts(client, f"other-{name}", ["last"])
        async with there.working():
            await agent.define(f"other-{name}")
            hosts.is_brief_begun.set()
            if not is_leased:
                await agent.run()
            await agent.until(lambda kept: kept.projection.cycle_ended == 2)
        assert (await agent.known()).moved.host == f"other-{name}-b"

    lived(engine.address, name, ["beat and end" if is_leased else "last"], life)
