"""The occasions on which a supervisor takes a snapshot, and what it does without one."""

import threading

import msgspec
import pytest

from rekindle.documents import events
from rekindle.documents.commits.snapshot_commit import LeftOutFile, Snapshot
from rekindle.errors import WorkspaceError
from rekindle.flows.supervisor_ports import TroubleReport
from unit.flows.cycles.test_cycle_runner import Scene
from unit.flows.handoff.test_write_checkpoint import ending


class Watched(Scene):
    """A scene whose work tree has a new state only where the test says so."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.labels, self.tree, self.error = [], "0", None
        self._last = ""

    def take(self, label):
        self.labels.append(label)
        if self.error:
            raise self.error
        is_new = label.reason == "start" or self.tree != self._last
        self._last = self.tree
        left_out = (LeftOutFile("large", "larger than 50 MB"),)
        number = len(self.labels)
        return Snapshot(label, number, "", "main", left_out=left_out, commit="c" * 40), is_new

    def world(self, store=None):
        more = {"take_snapshot": self.take, "signs": self.signs}
        return msgspec.structs.replace(super().world(store), **more)

    def signs(self, head, since):
        return None

    def taken(self):
        return [(one.cycle, one.reason) for one in self.logged(events.SnapshotTaken)]

    def kinds(self):
        wanted = ("launch", "cycle", "snapshot", "checkpoint")
        found = self.store.events_since("trades", 0).events
        return [one.kind for one in found if one.kind.startswith(wanted)]

    def changes(self):
        """A tick in which the agent changes its work tree."""

        def change():
            self.tree += "0"

        return change


@pytest.fixture
def scene(store, clock, tmp_path):
    return Watched(store, clock, tmp_path)


def test_a_cycle_has_a_snapshot_before_its_first_launch_and_at_its_end(scene):
    scene.plays(("clean", scene.opens(), scene.changes()))
    scene.run()
    assert scene.kinds() == [
        "cycle.started",
        "snapshot.taken",
        "launch.started",
        "launch.ended",
        "snapshot.taken",
        "cycle.ended",
    ]
    start, end = scene.logged(events.SnapshotTaken)
    assert (start.reason, start.snapshot, start.launch, start.left_out) == (
        *("start", "trades/1", ""),
        1,
    )
    (launch,) = scene.logged(events.LaunchStarted)
    assert (end.reason, end.cycle, end.launch) == ("end", 1, launch.launch)


def test_a_resume_relies_on_the_snapshot_from_the_start_of_the_cycle(scene):
    """A restart must not wait for git."""
    crash = ("crash", scene.opens())
    scene.plays(crash, (*crash, scene.changes()), crash, ("clean", scene.opens()))
    scene.run()
    assert [one.reason for one in scene.labels] == ["start", "end"]
    assert scene.taken() == [(1, "start"), (1, "end")]


@pytest.mark.parametrize("meanwhile", ["exit", "summary"])
def test_a_handoff_takes_one_while_the_exit_is_recorded_and_the_summary_written(scene, meanwhile):
    """Each of them waits for the snapshot or it for them; one after the other, they would fail."""
    begun, written = threading.Event(), threading.Event()
    take, make = scene.take, ending().checkpointer

    def take_slowly(label):
        if label.reason == "handoff":
            begun.set()
            assert meanwhile == "exit" or written.wait(120)
        return take(label)

    def read_signs(_head, _since):
        assert begun.wait(120), "the snapshot begins before the exit is recorded"

    def checkpointer():
        written.set()
        return make()

    scene.take, scene.signs = take_slowly, read_signs
    scene.plays(("context-full", scene.opens(), scene.changes()), ("clean", scene.opens()))
    assert scene.run(ending=ending(checkpointer=checkpointer)).why == "cycles"
    assert scene.taken() == [(1, "start"), (1, "handoff")]
    second_launch = [n for n, kind in enumerate(scene.kinds()) if kind == "launch.started"][1]
    assert "snapshot.taken" in scene.kinds()[4:second_launch], "complete before the next session"


def test_it_is_recorded_even_if_no_handoff_follows(scene):
    def stop():
        command = events.DesiredSet(ts=scene.clock(), desired="stopped")
        with scene.store.writer("trades") as writer:
            writer.append(command)

    scene.plays(("context-full", scene.opens(), scene.changes(), stop))
    assert scene.run(ending=ending()).why == "stopped"
    assert scene.taken() == [(1, "start"), (1, "handoff")]


def test_an_agent_continues_without_a_snapshot_and_says_so_once(scene):
    scene.error = WorkspaceError("slow", "git add took longer than 20 s", hint="")
    crash = ("crash", scene.opens())
    scene.plays(crash, crash, ("clean", scene.opens()))
    assert scene.run().why == "cycles"
    troubles = [one.words for one in scene.told if isinstance(one, TroubleReport)]
    slow = "git add took longer than 20 s"
    assert troubles == [
        f"trades continues without a snapshot of its work tree: workspace: {slow}",
    ]
    assert [one.reason for one in scene.labels] == ["start"], "a slow one is not repeated at once"
    assert scene.taken() == []


def test_another_failure_is_tried_again_and_reported_once(scene):
    scene.error = WorkspaceError("locked", "git add: locked", hint="")
    scene.plays(("crash", scene.opens()), ("clean", scene.opens()))
    scene.run()
    assert len([one for one in scene.told if isinstance(one, TroubleReport)]) == 1
    assert [one.reason for one in scene.labels] == ["start", "end"]


def test_the_session_after_a_rewind_is_fresh_and_told_so(scene):
    def rewinds():
        rewound = events.WorkRewound(
            ts=scene.clock(),
            snapshot="trades/1",
            commit="c" * 40,
            occasion="cycle 1, start",
            saved="trades/2",
        )
        with scene.store.writer("trades") as writer:
            writer.append(rewound)

    prompts = []
    start = scene.processes.start

    def note(argv, **how):
        prompts.append(how["prompt"])
        return start(argv, **how)

    scene.processes.start = note
    crash = ("crash", scene.opens())
    scene.plays((*crash, rewinds), crash, ("clean", scene.opens()))
    scene.run()
    assert [one.resumes for one in scene.logged(events.LaunchStarted)] == [False, False, True]
    notice = "The operator rewound the work tree to snapshot trades/1 (cycle 1, start)."
    assert [notice in prompt for prompt in prompts] == [False, True, False]
