"""A cycle of an agent that a test plays: what is done in which order, and what stays known."""

import errno
import threading
import uuid
from pathlib import Path

import pytest

from conftest import RELAY
from doubles import NoBackground, Unbraked
from rekindle.documents import events, primer, relay
from rekindle.documents.launches.launch_types import (
    AssistantText,
    Capabilities,
    FinalReport,
    LaunchExit,
    ProgramCommand,
    SessionOpened,
    SweptProcesses,
    UsageReport,
    WindowUsage,
)
from rekindle.documents.manifest import Persona
from rekindle.errors import AgentError, ProgramMissingError, StoreError, SupervisedError
from rekindle.flows.supervision.supervisor import Supervisor
from rekindle.flows.supervisor_ports import (
    AgentSpec,
    ExitReport,
    LaunchReport,
    SupervisorPorts,
    TroubleReport,
)
from rekindle.policy.settings.runtime_settings import (
    STOP_SECONDS,
    RestartSettings,
    RuntimeSettings,
    Settings,
)
from rekindle.stores.log import inbox
from rekindle.system.files import durable_files

BANNER = "=== RECOVERY DETECTED ==="


class FakeHarness(Unbraked):
    """A dialect in which every line of the stream is one thing that is seen."""

    NAME = "fake"
    PASSED_PREFIXES = ()
    BLOCKED_VARIABLES = ()
    INSTALL = "install it with `get fake`"
    CAN = Capabilities()

    def __init__(self):
        self.seen = {}
        self.exits = []
        self.ended = []
        self.starts = []

    def command(self, start):
        self.starts.append(start)
        files = {"hooks.json": " ".join(start.hook)}
        return ProgramCommand(("fake", start.session), {"FROM_HARNESS": "1"}, files)

    def read_hook(self, line):
        return None

    def read_stream(self, line):
        return self.seen[line]

    def usage(self, tail, windows):
        return WindowUsage(len(tail), None, "unknown")

    def turn(self, line):
        return None

    def read_transcript(self, line):
        return ()

    def asides(self, transcript, session):
        return None

    def has_prompt(self, transcript, prompt):
        return any(prompt.encode() in line for line in transcript)

    def classify(self, ended):
        self.ended.append(ended)
        return LaunchExit("interrupted", "stopped") if ended.stopped else self.exits.pop(0)


class FakeChild:
    def __init__(self, play):
        self._play = play
        self.pid = 7
        self.code = 0
        self.errors = "its complaints"
        self.told = []

    def follow(self, every):
        for one in self._play:
            yield one() if callable(one) else one
            if "kill" in self.told:
                self.code = -9
                return

    def ask_to_end(self):
        self.told.append("ask")

    def kill(self):
        self.told.append("kill")


class FakeProcesses(NoBackground):
    """Starts what the test plays, and notes what was done and what the log said by then."""

    def __init__(self, store):
        self._store = store
        self.plays = []
        self.done = []
        self.children = []
        self.left = {}
        self.this_boot = "b00t"
        self.awake = 0.0

    def durable(self):
        """The kinds of the launches' and cycles' events that are in the log by now."""
        found = self._store.events_since("trades", 0).events
        return [one.kind for one in found if one.kind.startswith(("launch", "cycle"))]

    def start(self, argv, *, prompt, environment, folder):
        self.done.append(("start", self.durable()))
        self.asked = {"argv": argv, "prompt": prompt, "env": environment, "folder": folder}
        play = self.plays.pop(0)
        if isinstance(play, Exception):
            raise play
        self.children.append(FakeChild(play))
        return self.children[-1]

    def boot(self):
        return self.this_boot

    def uptime(self):
        return 12.5 + self.awake

    def vitals(self, pid, mark, *, boot, uptime):
        return None

    def end_launch_processes(self, mark, *, boot, uptime, patience, recorded=(), program=""):
        self.done.append(("sweep", self.durable()))
        self.swept = (mark, boot, uptime)
        return SweptProcesses(self.left.get(mark, 0))

    def is_alive(self, process):
        return False


class Scene:
    """An agent, the world around it, and everything that it told."""

    def __init__(self, store, clock, tmp_path):
        self.store, self.clock, self.folder = store, clock, tmp_path
        self.harness = FakeHarness()
        self.processes = FakeProcesses(store)
        self.told = []
        self.interruptions = 0
        self.settings = Settings()
        self.facts = {}
        self.seconds = 0.0
        self.notified = []

    def later(self, seconds):
        """A tick of the launch that comes so much later."""
        return lambda: self.rest(seconds)

    def rest(self, seconds):
        self.seconds += seconds
        self.processes.awake += seconds
        self.clock.forward(seconds=seconds)

    def plays(self, *launches):
        """Each a kind of exit, and what its process shows."""
        for kind, *shown in launches:
            self.harness.exits.append(
                kind if isinstance(kind, LaunchExit) else LaunchExit(kind, "words")
            )
            self.processes.plays.append([*shown, None])

    def opens(self):
        """A line in which the program says that it works on the session it was given."""
        return self.shows(lambda: (SessionOpened(self.harness.starts[-1].session),))

    def shows(self, make):
        name = f"line-{len(self.harness.seen)}".encode()

        def line():
            self.harness.seen[name] = make()
            return name

        self.harness.seen[name] = ()
        return line

    def agent(self, **more):
        facts = {
            "name": "trades",
            "harness": self.harness,
            "folder": str(self.folder),
            "task": "Ship it.",
            "rules": "Never touch main.",
            "persona": Persona(),
            "environment": {"PATH": "/bin"},
            "hook": ("python", "hook.pyc"),
        }
        return AgentSpec(**facts | self.facts | more)

    def world(self, store=None):
        return SupervisorPorts(
            store=store or self.store,
            processes=self.processes,
            settings=self.settings,
            clock=self.clock,
            elapsed=lambda: self.seconds,
            rest=self.rest,
            interrupted=lambda: self.interruptions,
            by_hand=lambda: False,
            enter_pressed=lambda: False,
            tell=self.told.append,
            notify=lambda what, words: self.notified.append((what, words)),
        )

    def run(self, store=None, **how):
        return Supervisor(self.agent(), self.world(store), **{"once": True} | how).run()

    def logged(self, kind):
        return [one for one in self.store.events_since("trades", 0).events if isinstance(one, kind)]

    def exits(self):
        return [one.exit for one in self.logged(events.LaunchEnded)]


@pytest.fixture
def scene(store, clock, tmp_path):
    return Scene(store, clock, tmp_path)


def test_a_clean_cycle_is_one_launch(scene):
    """Started, ended, told; the cycle is closed and its outcome clean."""
    scene.plays(("clean", scene.opens()))
    outcome = scene.run()
    assert (outcome.cycle, outcome.why, outcome.last.kind) == (1, "cycles", "clean")
    assert scene.processes.durable() == [
        "cycle.started",
        "launch.started",
        "launch.ended",
        "cycle.ended",
    ]
    (started,) = scene.logged(events.LaunchStarted)
    (ended,) = scene.logged(events.LaunchEnded)
    assert (started.harness, started.boot, started.uptime) == ("fake", "b00t", 12.5)
    assert (started.resumes, started.recovery) == (False, False)
    assert ended.opened
    assert ended.launch == started.launch
    assert [type(one) for one in scene.told] == [LaunchReport, SessionOpened, ExitReport]


def test_what_is_begun_is_durable_before_and_what_is_left_is_ended_before_the_next(scene):
    """LaunchStarted, start, sweep, LaunchEnded; and only then the next."""
    scene.plays(("crash", scene.opens()), ("clean", scene.opens()))
    scene.run()
    begun = ["cycle.started", "launch.started"]
    again = [*begun, "launch.ended", "launch.started"]
    assert scene.processes.done == [
        ("start", begun),
        ("sweep", begun),
        ("start", again),
        ("sweep", again),
    ]


def test_the_sweep_looks_for_the_mark_that_the_launch_was_given(scene):
    """The mark in its environment is the one in the log, with boot and time of its start."""
    scene.plays(("clean",))
    scene.run()
    (started,) = scene.logged(events.LaunchStarted)
    environment = scene.processes.asked["env"]
    assert environment == {
        "PATH": "/bin",
        "FROM_HARNESS": "1",
        "REKINDLE_LAUNCH": started.launch,
        "REKINDLE_FOLDER": str(scene.store.folder("trades").path),
        "REKINDLE_RULES": str(scene.store.folder("trades").run),
        "REKINDLE_AGENT": "trades",
    }
    assert scene.processes.swept == (started.launch, "b00t", 12.5)


def test_a_crash_is_resumed_and_a_session_that_is_gone_is_taken_over(scene):
    """The same session once more; then a fresh one that is told what happened, with a new id."""
    with scene.store.writer("trades") as writer:
        writer.commit_relay(relay.parse(RELAY), by="person")
    prompts = []
    start = scene.processes.start

    def noting(argv, **how):
        prompts.append(how["prompt"])
        return start(argv, **how)

    scene.processes.start = noting
    scene.plays(
        ("crash", scene.opens()),
        ("resume-failed",),
        ("clean", scene.opens()),
    )
    assert scene.run().why == "cycles"
    started = scene.logged(events.LaunchStarted)
    assert [one.resumes for one in started] == [False, True, False]
    assert [one.recovery for one in started] == [False, False, True]
    first, resumed, fresh = [one.session for one in started]
    assert resumed == first
    assert fresh != first
    assert len({one.launch for one in started}) == 3
    assert all(uuid.UUID(one.session) for one in started)
    assert BANNER not in prompts[0]
    assert prompts[0].rstrip().endswith("Ship it.")
    assert prompts[1] == primer.RESUME_PROMPT
    assert prompts[2].startswith(BANNER)
    assert "  Task: Write the parser\n" in prompts[2]


def test_there_is_one_supervisor(scene, open_store):
    """A second one is refused by name, starts nothing and writes nothing."""
    before = scene.store.read("trades").committed.seq
    with scene.store.supervising("trades"):
        assert scene.store.is_supervised("trades")
        with pytest.raises(SupervisedError, match="trades is already running"):
            scene.run(open_store())
    assert not scene.store.is_supervised("trades")
    assert scene.processes.done == []
    assert scene.store.read("trades").committed.seq == before


def test_the_supervisor_lets_go_when_it_fails(scene):
    """An error leaves nothing behind that would keep the next run out."""
    scene.processes.plays.append(ProgramMissingError("fake", "No such file or directory"))
    with pytest.raises(ProgramMissingError):
        scene.run()
    assert not scene.store.is_supervised("trades")


def test_while_an_agent_runs_commands_can_still_write(scene, open_store):
    """The writer's lock is taken for moments only."""
    added = []

    def add():
        loop = events.LoopAdded(ts=scene.clock(), id="rate-limit", text="How many?")
        added.append(open_store().submit("trades", loop))

    scene.plays(("clean", add))
    scene.run()
    assert added == [True]
    assert "rate-limit" in scene.store.read("trades").committed.loops


def lose(scene, *, boot="b00t", mark="lost-1", cycle=1, session=None, opened=True):
    """A supervisor began a launch and is gone."""
    session = session or str(uuid.uuid4())
    with scene.store.writer("trades") as writer:
        writer.append(
            events.CycleStarted(ts=scene.clock(), cycle=cycle),
            events.LaunchStarted(
                ts=scene.clock(),
                launch=mark,
                cycle=cycle,
                session=session,
                harness="fake",
                boot=boot,
                uptime=3.5,
            ),
        )
        if opened:
            hooked = {"session": session, "harness": "fake", "launch": mark}
            writer.append(events.SessionStarted(ts=scene.clock(), source="startup", **hooked))


def test_a_launch_that_was_lost_before_it_began_has_interrupted_nothing(scene):
    """Killed between the log and the start: no session to go on with, and no notice."""
    lose(scene, opened=False)
    scene.plays(("clean", scene.opens()))
    assert scene.run().why == "cycles"
    started = scene.logged(events.LaunchStarted)[-1]
    assert (started.resumes, started.recovery) == (False, False)


def test_a_session_that_the_api_refuses_is_given_up_at_once(scene):
    """It opens, and what it holds is refused: a fresh one takes over."""
    opens = scene.opens()
    scene.plays(("crash", opens), ("resume-failed", opens), ("clean", opens))
    assert scene.run().why == "cycles"
    started = scene.logged(events.LaunchStarted)
    assert [one.resumes for one in started] == [False, True, False]
    assert started[-1].recovery


def test_another_cli_s_session_is_not_gone_on_with(scene):
    """The agent was given another harness since: a fresh session takes over, and is told so."""
    scene.plays(("interrupted", scene.opens()), ("clean", scene.opens()))
    assert scene.run().why == "interrupted"
    scene.harness.NAME = "another"
    assert scene.run().why == "cycles"
    started = scene.logged(events.LaunchStarted)[-1]
    assert (started.resumes, started.recovery) == (False, True)


@pytest.mark.parametrize(
    ("left", "continued"),
    [
        ("SESSION\n\nturn-1\nturn-2\nmore", True),
        ("SESSION\n\nturn-1\nturn-", False),
        ("SESSION\n", False),
        ("\0" * 4000, False),
        ("a visitor's\nturn-2\n", False),
        ("", True),
    ],
    ids=["whole", "without its last turn", "emptied", "zeroes", "foreign", "gone"],
)
def test_a_session_that_has_lost_what_it_was_asked_is_not_gone_on_with(
    scene, tmp_path, left, continued
):
    """A power loss cut its transcript: a fresh one takes over. What is gone the CLI refuses."""
    transcript = tmp_path / "transcript"

    def works():
        session = scene.harness.starts[-1].session
        told = {"session": session, "ts": scene.clock()}
        with scene.store.writer("trades") as writer:
            writer.append(
                events.SessionStarted(harness="fake", transcript=str(transcript), **told),
                events.PromptSubmitted(text="first", call="turn-1", **told),
            )
            scene.clock.forward(seconds=1)
            told["ts"] = scene.clock()
            writer.append(events.PromptSubmitted(text="again", call="turn-2", **told))
        transcript.write_text(left.replace("SESSION", session))

    scene.plays(("interrupted", scene.opens(), works), ("clean", scene.opens()))
    assert scene.run().why == "interrupted"
    assert scene.run().why == "cycles"
    started = scene.logged(events.LaunchStarted)[-1]
    assert (started.resumes, started.recovery) == (continued, not continued)


def test_the_usage_of_a_session_that_its_cli_named(scene, tmp_path):
    """Its transcript is found by the id that it came up with."""
    scene.harness.CAN = Capabilities(names_sessions=False)
    transcript = tmp_path / "transcript"
    transcript.write_bytes(b"x" * 70)
    session = str(uuid.uuid4())

    def begins():
        hooked = {"session": session, "harness": "fake", "transcript": str(transcript)}
        with scene.store.writer("trades") as writer:
            writer.append(events.SessionStarted(ts=scene.clock(), source="startup", **hooked))

    scene.plays(("clean", begins, scene.shows(lambda: (SessionOpened(session),))))
    scene.run()
    (ended,) = scene.logged(events.LaunchEnded)
    assert (ended.session, ended.tokens) == (session, 70)


def test_a_prompt_that_begins_with_a_slash_is_not_a_command(scene):
    """The CLI would run it instead of passing it to the model."""
    scene.facts = {"task": "/clear the table", "rules": ""}
    scene.plays(("clean", scene.opens()))
    scene.run()
    assert scene.processes.asked["prompt"].startswith("\n/clear")


def test_what_a_lost_supervisor_left_is_ended_before_anything_is_started(scene):
    """It is found by its mark and recorded as lost with its processes; then its session resumes."""
    session = str(uuid.uuid4())
    lose(scene, session=session)
    scene.processes.left["lost-1"] = 3
    scene.plays(("clean", scene.opens()))
    assert scene.run().why == "cycles"
    assert [what for what, _ in scene.processes.done] == ["sweep", "start", "sweep"]
    lost, ended = scene.logged(events.LaunchEnded)
    assert (lost.launch, lost.exit, lost.swept, lost.session) == ("lost-1", "lost", 3, session)
    assert (ended.exit, ended.resumes, ended.session) == ("clean", True, session)
    fell = next(one for one in scene.told if isinstance(one, ExitReport))
    assert fell.swept == 3


def test_a_launch_of_another_boot_is_looked_for_as_such(scene):
    """The sweep is given the boot and its uptime, so that it leaves other boots alone."""
    lose(scene, boot="an0ther")
    swept = []
    nothing_recorded = {"recorded": [], "program": ""}
    scene.processes.end_launch_processes = lambda mark, **at: (
        swept.append((mark, at)) or SweptProcesses()
    )
    scene.plays(("clean",))
    scene.run()
    assert swept[0] == (
        "lost-1",
        {"boot": "an0ther", "uptime": 3.5, "patience": STOP_SECONDS, **nothing_recorded},
    )


def test_a_lost_launch_is_settled_once(scene):
    """The run after the next does not look for it again."""
    lose(scene)
    scene.plays(("clean",), ("clean",))
    scene.run()
    scene.run()
    assert scene.exits() == ["lost", "clean", "clean"]


@pytest.mark.parametrize(
    "error",
    [
        ProgramMissingError("fake", "No such file or directory"),
        AgentError("the agent's folder is not there", hint="correct `dir:`"),
    ],
    ids=["no-program", "no-folder"],
)
def test_an_agent_that_cannot_be_started_leaves_no_open_launch(scene, error):
    """The launch is closed with its reason; after a fix, a fresh session begins."""
    scene.processes.plays.append(error)
    with pytest.raises(AgentError) as caught:
        scene.run()
    assert caught.value.hint
    if isinstance(error, ProgramMissingError):
        assert caught.value.hint == scene.harness.INSTALL
    (ended,) = scene.logged(events.LaunchEnded)
    assert (ended.exit, ended.opened, ended.words) == ("crash", False, str(error))
    scene.processes.done.clear()
    scene.plays(("clean", scene.opens()))
    assert scene.run().why == "cycles"
    assert [what for what, _ in scene.processes.done] == ["start", "sweep"]
    assert [one.resumes for one in scene.logged(events.LaunchStarted)] == [False, False]


def test_a_failure_while_following_is_told_once_and_the_agent_works_on(scene, monkeypatch):
    """A full disk is the supervisor's problem: it is reported once, and ends nothing."""
    full = [False]
    real = scene.store.writer

    def writer(agent, **how):
        if full[0]:
            raise StoreError("ops.jsonl", "No space left on device", errno=errno.ENOSPC)
        return real(agent, **how)

    monkeypatch.setattr(scene.store, "writer", writer)

    def fills_up():
        full[0] = True

    def is_freed():
        full[0] = False

    said = scene.shows(lambda: (AssistantText("still here"),))
    scene.plays(("clean", scene.opens(), fills_up, *[scene.later(3)] * 3, said, is_freed))
    assert scene.run().why == "cycles"
    assert [one.words for one in scene.told if isinstance(one, TroubleReport)] == [
        "ops.jsonl: No space left on device"
    ]
    assert AssistantText("still here") in scene.told


def test_a_failure_of_ours_releases_the_agent_at_once(scene, monkeypatch):
    """Waiting for the garbage collector would keep the terminal from the person."""
    let_go = []

    def follow(_child, _every):
        try:
            yield b"what the harness cannot read"
        finally:
            let_go.append(True)

    monkeypatch.setattr(FakeChild, "follow", follow)
    scene.plays(("clean",))
    try:
        scene.run()
    except KeyError:
        assert let_go
    else:
        pytest.fail("it was read")


def test_hooks_are_folded_while_the_agent_works(scene):
    """Their reports are in the log before the launch ends."""
    beats = []

    def reports():
        beat = events.Heartbeat(ts=scene.clock(), session="one", tool="Bash", call="c1")
        inbox.append_records(scene.store.folder("trades").inbox, [beat], durable=True)

    def looks():
        beats.append(len(scene.logged(events.Heartbeat)))

    scene.plays(("clean", reports, scene.later(3), looks))
    scene.run()
    assert beats == [1]


@pytest.mark.parametrize(("times", "told"), [(1, ["ask"]), (2, ["ask", "kill"])])
def test_the_operator_asks_once_and_insists_twice(scene, times, told):
    """Ctrl-C asks the agent to end; a second one kills it; neither is a crash."""

    def presses():
        scene.interruptions = 1

    def presses_again():
        scene.interruptions = times

    scene.plays(("never",))
    scene.processes.plays[0] = [scene.opens(), presses, None, presses_again, None]
    scene.harness.exits.clear()
    outcome = scene.run()
    assert scene.processes.children[0].told[: len(told)] == told
    assert ("kill" in scene.processes.children[0].told) == (times > 1)
    assert outcome.why == "stopped"
    assert scene.exits() == ["interrupted"]
    assert scene.processes.durable()[-1] == "launch.ended"  # the cycle stays open


def test_one_that_does_not_end_when_asked_is_killed(scene):
    """Asked once, and after its time made to."""

    def presses():
        scene.interruptions = 1

    scene.plays(("never",))
    scene.processes.plays[0] = [presses, scene.later(5), scene.later(6), None]
    scene.harness.exits.clear()
    scene.run()
    assert scene.processes.children[0].told == ["ask", "kill"]
    assert scene.harness.ended[0].code == -9


def test_cycles_are_numbered_over_runs(scene):
    """Each clean run is the next cycle."""
    for number in (1, 2, 3):
        scene.plays(("clean",))
        assert scene.run().cycle == number
    assert [one.cycle for one in scene.logged(events.CycleEnded)] == [1, 2, 3]


@pytest.mark.parametrize("kind", ["limit", "overload", "auth", "budget", "interrupted"])
def test_a_stopped_cycle_continues_with_the_next_run(scene, kind):
    """It stays open; the next run resumes its session under the same number."""
    scene.plays((kind, scene.opens()))
    outcome = scene.run()
    assert (outcome.cycle, outcome.why) == (1, kind)
    assert scene.logged(events.CycleEnded) == []
    scene.plays(("clean", scene.opens()))
    assert scene.run().cycle == 1
    first, second = scene.logged(events.LaunchStarted)
    assert (second.session, second.resumes) == (first.session, True)
    assert len(scene.logged(events.CycleStarted)) == 1


def test_a_supervisor_killed_between_end_and_close_only_closes(scene):
    """The work was done: nothing is started for it again."""
    lose(scene, mark="done-1")
    with scene.store.writer("trades") as writer:
        writer.append(
            events.LaunchEnded(
                ts=scene.clock(), launch="done-1", cycle=1, session="one", exit="clean"
            )
        )
    outcome = scene.run()
    assert (outcome.why, outcome.last, scene.processes.done) == ("cycles", None, [])
    assert [one.cycle for one in scene.logged(events.CycleEnded)] == [1]


def test_an_agent_that_only_crashes_is_given_up(scene):
    """It is started as often as the manifest allows."""
    scene.settings = Settings(runtime=RuntimeSettings(restart=RestartSettings(max_crashes=4)))
    scene.plays(*[("crash", scene.opens())] * 9)
    outcome = scene.run()
    assert (outcome.why, len(scene.exits())) == ("crash", 4)


def test_a_clock_set_back_while_it_runs_does_not_keep_it_running(scene):
    """Ctrl-C still ends the run when the time of day has moved behind its beginning."""

    def presses():
        scene.clock.forward(hours=-2)
        scene.interruptions = 1

    scene.plays(("never",), ("never",))
    scene.processes.plays[0] = [scene.opens(), presses, None]
    scene.harness.exits.clear()
    assert scene.run().why == "stopped"
    assert len(scene.exits()) == 1


def test_what_it_cost_and_how_it_ended_is_kept(scene):
    """Money, tokens, code, words, and of a limit when it ends."""
    finished = FinalReport("s", ok=False, usd=0.25)
    shown = scene.shows(lambda: (UsageReport(WindowUsage(1234, 200_000, "reported")), finished))
    found = LaunchExit("limit", "a limit was reached", "resets 3am", 1_794_709_671)
    scene.plays((found, scene.opens(), shown))
    assert scene.run().last == found
    (ended,) = scene.logged(events.LaunchEnded)
    assert (ended.usd, ended.tokens, ended.window) == (0.25, 1234, 200_000)
    assert (ended.code, ended.words) == (0, "a limit was reached")
    assert (ended.hint, ended.resets_at) == ("resets 3am", 1_794_709_671)
    asked = scene.harness.ended[0]
    assert (asked.errors, asked.finished, asked.stopped) == ("its complaints", finished, False)


def test_without_a_word_of_usage_the_transcript_tells_it(scene, tmp_path):
    """Killed before it said anything, its transcript still knows how full the window was."""
    transcript = tmp_path / "transcript.jsonl"
    transcript.write_bytes(b"x" * 300_000)

    def begins():
        with scene.store.writer("trades") as writer:
            writer.append(
                events.SessionStarted(
                    ts=scene.clock(),
                    session=scene.harness.starts[-1].session,
                    harness="fake",
                    transcript=str(transcript),
                )
            )

    scene.plays(("crash", begins), ("clean", transcript.unlink))
    scene.run()
    first, second = scene.logged(events.LaunchEnded)
    assert first.tokens == 256 * 1024  # only its end is read
    assert second.tokens is None


def test_another_session_than_the_one_asked_for_was_not_opened(scene):
    """A program that opened a session of its own did not work on ours."""
    scene.plays(("crash", scene.shows(lambda: (SessionOpened(str(uuid.uuid4())),))), ("clean",))
    scene.run()
    assert scene.logged(events.LaunchEnded)[0].opened is False
    assert [one.resumes for one in scene.logged(events.LaunchStarted)] == [False, False]


def test_the_hooks_of_a_launch_are_written_before_it(scene):
    """The file that the CLI is pointed to is there, complete, and for its owner alone."""
    found = []

    def looks():
        path = Path(scene.harness.starts[-1].scratch) / "hooks.json"
        found.append((durable_files.read_bytes(path), path.stat().st_mode & 0o777))

    scene.plays(("clean", looks))
    scene.run()
    ((text, mode),) = found
    assert b"hook.pyc" in text
    assert mode == 0o600


def test_a_supervisor_s_lock_does_not_hold_readers(scene, open_store):
    """A status from another thread answers while the agent runs, and says that it is supervised."""
    answers = []

    def asks():
        other = open_store()
        one = threading.Thread(target=lambda: answers.append(other.is_supervised("trades")))
        one.start()
        one.join(5)

    scene.plays(("clean", asks))
    scene.run()
    assert answers == [True]


def test_nothing_is_started_after_the_operator_said_stop(scene):
    """Ctrl-C while what a crash left behind is being ended: no agent begins only to be ended."""
    sweep = scene.processes.end_launch_processes

    def pressed(mark, **at):
        scene.interruptions = 1
        return sweep(mark, **at)

    scene.processes.end_launch_processes = pressed
    scene.plays(("crash", scene.opens()), ("never",))
    assert scene.run().why == "stopped"
    assert scene.exits() == ["crash"]
    scene.processes.end_launch_processes = sweep
    scene.interruptions = 0
    scene.harness.exits[:] = [LaunchExit("clean")]
    assert scene.run().why == "cycles"
    assert [one.resumes for one in scene.logged(events.LaunchStarted)] == [False, True]


def test_an_agent_that_has_worked_is_not_misconfigured(scene):
    """It may be being updated, so the exit counts as a crash, which is retried."""
    scene.plays(("crash", scene.opens()), ("misconfigured",), ("clean", scene.opens()))
    assert scene.run().last.kind == "clean"
    assert scene.exits() == ["crash", "crash", "clean"]


def test_an_agent_that_has_never_worked_is_misconfigured(scene):
    scene.plays(("misconfigured",))
    assert scene.run().why == "misconfigured"
    assert scene.exits() == ["misconfigured"]
