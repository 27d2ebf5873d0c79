"""kill -9 before every system call of a cycle's end, and of the start of the next.

Then another supervisor continues: the relay is the previous one or the drafted one, never anything
between; no cycle is reported twice or left out; no draft is lost; and a relay that was committed
before the kill is not taken for a repetition of itself.
"""

import os
import random
import shutil
import sys

import pytest

from copies import copy_project
from doubles import Done, Quiet, Unbraked, quiet_world
from prerequisites import needs
from rekindle.documents import events
from rekindle.documents import relay as relays
from rekindle.documents.launches.launch_types import (
    Capabilities,
    LaunchExit,
    ProgramCommand,
    SessionOpened,
)
from rekindle.documents.manifest import Persona
from rekindle.flows.cycles.close_cycle import CycleEndPorts
from rekindle.flows.launches.checked_command import CommandResult
from rekindle.flows.supervision.supervisor import Supervisor
from rekindle.flows.supervisor_ports import AgentSpec
from rekindle.flows.transcripts.summarize_turns import Summarizer
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from rekindle.summarizers.mechanical_summary import KnownWork
from rekindle.system import clock, host
from torture.tracing import count, kill_before, obstacle

pytestmark = [
    pytest.mark.torture,
    needs(obstacle()),
]

WHOLE = os.environ.get("REKINDLE_TORTURE") == "whole"
SAMPLE = 60
CYCLES = 3
OLD = "## Current Phase\nBuild\n\n## Next Action\nWrite part 0\n"


def drafted(number):
    return f"## Current Phase\nBuild\n\n## Next Action\nWrite part {number}\n"


class Scripted(Unbraked):
    """A harness whose program has drafted its relay by the time that it is started."""

    NAME, PASSED_PREFIXES, BLOCKED_VARIABLES, INSTALL, HOOK_FILES = "fake", (), (), "", None
    CAN = Capabilities()

    def command(self, start):
        self.session = start.session
        return ProgramCommand(("fake",))

    def read_stream(self, line):
        return (SessionOpened(self.session),)

    def classify(self, ended):
        return LaunchExit("clean", "finished")

    def usage(self, tail, windows):
        return None

    def read_transcript(self, line):
        return ()

    def asides(self, transcript, session):
        return None

    def has_prompt(self, transcript, prompt):
        return True


class Processes(Quiet):
    def __init__(self, store):
        self._store = store

    def start(self, argv, *, prompt, environment, folder):
        number = self._store.read("trades").projection.cycle
        self._store.folder("trades").draft.write_text(drafted(number))
        return Done()


def opened(project):
    return FileStore(
        project, host=host.identify_host(), settings=Settings(), clock=clock.read_clock
    )


def supervise(project, cycles=CYCLES, tell=lambda report: None):
    store = opened(project)
    agent = AgentSpec(
        name="trades",
        harness=Scripted(),
        folder=str(project),
        task="Build it.",
        rules="",
        persona=Persona(),
        environment={},
        hook=(),
        cycles=cycles,
        drafts=True,
    )
    world = quiet_world(store, Processes(store), tell)
    ending = CycleEndPorts(
        summarizer=lambda: Summarizer(None, cap=1000),
        checkpointer=lambda: Summarizer(None, cap=1000),
        known=lambda since: KnownWork(),
        until=CommandResult,
    )
    return Supervisor(agent, world, ending=ending).run()


def prepared(folder):
    """An agent in the middle of a run: its first cycle is over."""
    project = folder / "prepared"
    project.mkdir()
    store = opened(project)
    store.create("trades")
    with store.writer("trades") as writer:
        writer.commit_relay(relays.parse(OLD), by="person")
    supervise(project, cycles=1)
    return project


def the_next_two(project):
    def work(say):
        os.chdir(project)
        supervise(project, cycles=2)
        say(b"done")

    return work


def events_of(store, kind):
    return [one for one in store.events_since("trades", 0).events if isinstance(one, kind)]


def require_whole(project):
    store = opened(project)
    supervise(project)
    ended = [one.cycle for one in events_of(store, events.CycleEnded)]
    started = [one.cycle for one in events_of(store, events.CycleStarted)]
    assert ended == sorted(set(ended)), "a cycle was ended twice"
    assert started == sorted(set(started)), "a cycle was begun twice"
    assert started == ended == list(range(1, max(started) + 1)), "a cycle was left out"
    committed = [
        relays.parse(store.archived("trades", one.path)).next_action
        for one in events_of(store, events.RelayCommitted)
    ]
    assert committed == [f"Write part {number}" for number in range(len(committed))]
    verdicts = {one.verdict for one in events_of(store, events.CycleEnded)}
    assert verdicts == {"progress"}, "a relay was held against itself"
    text = store.folder("trades").document("relay").read_text()
    assert text == drafted(max(ended))
    assert store.inspect("trades") == []


def test_kill_at_a_cycle_s_end(tmp_path):
    first = prepared(tmp_path)
    copy = tmp_path / "copy"
    copy_project(first, copy)
    calls = count(the_next_two(copy))
    shutil.rmtree(copy)
    points = (
        range(1, calls + 1)
        if WHOLE
        else sorted(random.Random(7).sample(range(1, calls + 1), SAMPLE))
    )
    killed = 0
    for point in points:
        copy_project(first, copy)
        outcome = kill_before(the_next_two(copy), point)
        killed += outcome.killed_at is not None
        require_whole(copy)
        shutil.rmtree(copy)
    print(f"\n{killed} kills at {calls} system calls of two cycles", file=sys.stderr)
    assert killed >= len(points) * 0.9, "the fault did not happen"
