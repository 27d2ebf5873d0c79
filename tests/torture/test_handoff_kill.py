"""kill -9 before every system call of two handoffs, and of the sessions around them.

Then another supervisor continues: every session that was stopped has exactly one checkpoint; no
threshold is reported twice, or lost; a fresh session is told the latest checkpoint only; and the
cycle finishes.
"""

import json
import os
import random
import shutil
import sys

import pytest

from copies import copy_project
from doubles import Done, Quiet, Unbraked, quiet_world
from prerequisites import needs
from rekindle.documents import checkpoint, events
from rekindle.documents.checkpoint import CheckpointSection
from rekindle.documents.launches.launch_types import (
    LAUNCH_VARIABLE,
    Capabilities,
    LaunchExit,
    ProgramCommand,
    SessionOpened,
)
from rekindle.documents.launches.one_shot import OneShotAnswer
from rekindle.documents.manifest import Persona
from rekindle.documents.summaries import summary
from rekindle.flows.cycles.close_cycle import CycleEndPorts
from rekindle.flows.launches.checked_command import CommandResult
from rekindle.flows.supervision.supervisor import Supervisor
from rekindle.flows.supervisor_ports import AgentSpec
from rekindle.flows.transcripts.summarize_turns import Summarizer
from rekindle.harnesses.claude_code import claude_harness
from rekindle.stores.log import inbox
from rekindle.summarizers.mechanical_summary import KnownWork
from rekindle.system import clock
from torture.test_cycle_kill import events_of, opened
from torture.tracing import count, kill_before, obstacle

pytestmark = [
    pytest.mark.torture,
    needs(obstacle()),
]

WHOLE = os.environ.get("REKINDLE_TORTURE") == "whole"
SAMPLE = 60
HANDOFFS = 2
HEADING = "# Relay Checkpoint"
LEFT = "finish part {}"


class Scripted(Unbraked):
    """A harness whose program is stopped by its hook, in all sessions but the last."""

    NAME, PASSED_PREFIXES, BLOCKED_VARIABLES, INSTALL, HOOK_FILES = "fake", (), (), "", None
    CAN = Capabilities()
    brake = staticmethod(claude_harness.brake)
    read_transcript = staticmethod(claude_harness.read_transcript)
    turn = staticmethod(claude_harness.turn)
    usage = staticmethod(claude_harness.usage)

    def command(self, start):
        self.start = start
        return ProgramCommand(("fake",))

    def read_stream(self, line):
        return (SessionOpened(self.start.session),)

    def classify(self, ended):
        return LaunchExit("clean", "finished")

    def asides(self, transcript, session):
        return None

    def has_prompt(self, transcript, prompt):
        return True


def said(who, text, number, usage=None):
    message = {"id": f"m{number}", "role": who, "content": [{"type": "text", "text": text}]}
    told = {"usage": {"input_tokens": usage}, "model": "m"} if usage else {}
    line = {"type": who, "uuid": f"u{number}", "isSidechain": False, "message": message | told}
    return json.dumps(line, separators=(",", ":")) + "\n"


class Processes(Quiet):
    """Processes of a host whose sessions leave transcripts, and cross the threshold on request."""

    def __init__(self, store, harness, project):
        self._store, self._harness, self._project = store, harness, project

    def start(self, argv, *, prompt, environment, folder):
        start, crossed = self._harness.start, crossings(self._store)
        if not start.resumes:
            assert prompt.count(HEADING) == min(crossed, 1), "the latest, and that only"
            assert LEFT.format(crossed) in prompt or not crossed
        path = self._project / f"{start.session}.jsonl"
        lines = said("user", "go on", 1) + said("assistant", f"part {crossed + 1}", 2, usage=20)
        if not start.resumes or not path.exists():
            path.write_text(lines)
        started = events.SessionStarted(
            ts=clock.read_clock(),
            session=start.session,
            harness="fake",
            source="startup",
            transcript=str(path),
        )
        inbox.append_records(self._store.folder("trades").private.inbox, [started], durable=False)
        if crossed < HANDOFFS:
            with path.open("a") as file:
                file.write(said("assistant", "so full", 3, usage=85))
            self._store.folder("trades").brakes("").braked(
                environment[LAUNCH_VARIABLE]
            ).write_bytes(b"85 100")
        return Done()


def crossings(store):
    return len(events_of(store, events.HandoffTriggered))


def supervise(project):
    store, harness = opened(project), Scripted()
    agent = AgentSpec(
        name="trades",
        harness=harness,
        folder=str(project),
        task="Build it.",
        rules="",
        persona=Persona(),
        environment={},
        hook=(),
        cycles=1,
        threshold=80,
    )
    world = quiet_world(store, Processes(store, harness, project))

    def answered(request):
        text = LEFT.format(crossings(store))
        found = {
            name: [{"text": text, "turns": [1]}]
            for name in summary.list_asked_sections("checkpoint")
        }
        return OneShotAnswer(json.dumps(found), tokens=7)

    ending = CycleEndPorts(
        summarizer=lambda: Summarizer(None, cap=100_000),
        checkpointer=lambda: Summarizer(answered, cap=100_000),
        known=lambda since: KnownWork(),
        until=CommandResult,
    )
    return Supervisor(agent, world, ending=ending).run()


def prepared(folder):
    project = folder / "prepared"
    project.mkdir()
    store = opened(project)
    store.create("trades")
    with store.writer("trades") as writer:
        learnt = events.WindowSizeReported(
            ts=clock.read_clock(), harness="fake", model="m", window=100
        )
        writer.append(learnt)
    return project


def the_cycle(project):
    def work(say):
        os.chdir(project)
        supervise(project)
        say(b"done")

    return work


def require_whole(project):
    store = opened(project)
    if not store.read("trades").projection.run.is_over:
        supervise(project)
    with store.writer("trades") as writer:  # as the next writer does
        writer.fold()
        writer.project()
    triggered = events_of(store, events.HandoffTriggered)
    assert len({one.session for one in triggered}) == len(triggered) == HANDOFFS
    assert [one.tokens for one in triggered] == [85, 85]
    committed = events_of(store, events.CheckpointCommitted)
    assert len(committed) == HANDOFFS, "each crossing has one, and one only"
    order = [(one.seq, type(one).__name__) for one in (*triggered, *committed)]
    names = [name for _, name in sorted(order)]
    assert names == ["HandoffTriggered", "CheckpointCommitted"] * HANDOFFS
    left = [
        checkpoint.parse(store.archived("trades", one.path)).content(
            CheckpointSection.REMAINING_WORK
        )
        for one in committed
    ]
    assert [LEFT.format(number) in text for number, text in enumerate(left, 1)] == [True, True]
    resumed = [one.count for one in events_of(store, events.HandoffResumed)]
    assert resumed == [1, 2]
    ended = [one.exit for one in events_of(store, events.LaunchEnded)]
    assert ended.count("handoff") == HANDOFFS
    assert ended[-1] == "clean"
    assert [one.cycle for one in events_of(store, events.CycleEnded)] == [1]
    assert store.inspect("trades") == []


def test_kill_at_a_handoff(tmp_path):
    first = prepared(tmp_path)
    copy = tmp_path / "copy"
    copy_project(first, copy)
    calls = count(the_cycle(copy))
    require_whole(copy)
    shutil.rmtree(copy)
    points = (
        range(1, calls + 1)
        if WHOLE
        else sorted(random.Random(9).sample(range(1, calls + 1), SAMPLE))
    )
    killed = 0
    for point in points:
        copy_project(first, copy)
        outcome = kill_before(the_cycle(copy), point)
        killed += outcome.killed_at is not None
        try:
            require_whole(copy)
        except AssertionError as error:
            raise AssertionError(f"killed before call {point}") from error
        shutil.rmtree(copy)
    print(f"\n{killed} kills at {calls} system calls of two handoffs", file=sys.stderr)
    assert killed >= len(points) * 0.9, "the fault did not happen"
