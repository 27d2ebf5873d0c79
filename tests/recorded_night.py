"""A recorded night of a project with five agents, for tests, pictures and screens.

`write_night` writes a real project folder through the real store, so that every command, screen and
API can read it. The agents' seals are in the user's folder: read the project with the same HOME.
`keep_supervised` holds the locks of the agents that are to look alive.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from rekindle.config import load_project
from rekindle.documents import events, relay
from rekindle.documents.checkpoint import parse as parse_checkpoint
from rekindle.documents.events import AnyEvent, Event
from rekindle.documents.launches.launch_types import RefusedCall
from rekindle.documents.transcripts.turns import ToolCall, Turn
from rekindle.policy.operator import answers, questions
from rekindle.policy.operator.questions import QuestionTerms
from rekindle.stores.files import FileStore
from rekindle.stores.files.transcript_archive import ArchivedTranscript, TranscriptArchive
from rekindle.stores.files.writer import Writer
from rekindle.stores.folders.private_files import find_private_project
from rekindle.system import clock, host
from rekindle.wiring.open_store import open_store

NOW = datetime(2026, 4, 14, 7, 14, tzinfo=UTC)
"""End of the night, if `write_night` is given no other."""
SUPERVISED = ("docs", "api")
WINDOW = 200_000
QUESTION = "Ten or a hundred updates an hour?"
MANIFEST = """\
version: 1
agents:
  trades:
    harness: claude-code
    budget: {usd: 10}
    handover: {compaction: {trigger: "token_limit_70%"}}
  docs: {harness: codex, budget: {usd: 5}}
  api: {harness: gemini, budget: {usd: 8}}
  infra: {harness: claude-code, budget: {usd: 5}}
  web: {harness: claude-code}
runtime: {brief: {zone: UTC}}
"""
RELAY = """\
# Relay

## Current Phase
{phase}

## What We Did This Cycle
{did}

## Key Decisions Made
{decided}

## Metrics
{metrics}

## Next Action
{following}

## Open Questions
{asks}
"""
RELAYS = (
    {
        "phase": "Read the order book",
        "did": "- Added GET /profile and its tests.",
        "decided": "- Store times in UTC.",
        "metrics": "Tests: 41 pass.",
        "following": "Implement POST /profile with validation.",
        "asks": "- Who may change a profile?",
    },
    {
        "phase": "Write to the order book",
        "did": "- Implemented POST /profile with validation.\n- Fixed the flaky test of api.py.",
        "decided": "- Store times in UTC.\n- Reject unknown fields with 422.",
        "metrics": "Tests: 58 pass.",
        "following": "Limit the updates of one client.",
        "asks": "None.",
    },
    {
        "phase": "Write to the order book",
        "did": "- Prepared the limit of updates, with its value missing.",
        "decided": "- Store times in UTC.\n- Reject unknown fields with 422.\n"
        "- Count updates for each client, not for each address.",
        "metrics": "Tests: 63 pass.",
        "following": f"Waiting for a person: {QUESTION}",
        "asks": f"- {QUESTION}",
    },
)
LOOPS = {
    "who-may-change": "Who may change a profile?",
    "flaky-api": "A test of api.py is flaky",
    "rate-limit": "Choose the limit of updates",
}
CHECKPOINT = """\
# Checkpoint

## Completed Work
POST /profile is implemented.

## Current State
It validates its fields.

## Modified Files
src/api.py

## Remaining Work
Tests of wrong fields.

## Resume Instructions
Run pytest -q tests/api, then continue with api.py.
"""
SESSIONS = (
    ("session-1", "22:00", "00:05", 18_000, 112_000),
    ("session-2", "00:06", "00:52", 18_000, 142_000),
    ("session-3", "00:53", "02:00", 21_000, 84_000),
    ("session-4", "05:42", "06:05", 21_000, 61_000),
    ("session-5", "06:06", "06:30", 18_000, 55_000),
    ("session-6", "06:31", "07:00", 18_000, 80_000),
)
"""Sessions of `trades` with their first and last turn, and the tokens in their windows then."""
WORK = (
    ("Bash", "pytest -q tests/api", "12 passed"),
    ("Edit", "src/api.py", ""),
    ("Read", "src/profile.py", "def update_profile(fields): ..."),
    ("Bash", "git commit -m 'Validate POST /profile'", "1 file changed"),
)


def write_night(folder: Path, now: datetime = NOW) -> Path:
    """Write the project into a folder, as if it were `now` and the night had just ended."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rekindle.yaml").write_text(MANIFEST)
    project = load_project(folder)
    clock = NightClock(now)
    store = FileStore(
        project.path,
        host=host.identify_host(),
        settings=project.settings,
        clock=clock,
        private=find_private_project(project.path),
    )
    _record_trades(AgentNightWriter(store, "trades", clock))
    _record_others(store, clock)
    return folder


def ask_permission(folder: Path, agent: str) -> None:
    """Let an agent ask for a permission now."""
    call = RefusedCall(tool="Bash", about="git push origin main", arguments={"command": "git push"})
    with open_store(load_project(folder)).writer(agent) as writer:
        terms = QuestionTerms(clock.read_clock(), float("inf"))
        writer.append(*questions.ask_about_calls(writer.projection, [call], "launch", terms))


@contextmanager
def keep_supervised(folder: Path) -> Iterator[None]:
    """Hold the supervisor locks of the agents that run or wait, until the block ends."""
    store = open_store(load_project(folder))
    with ExitStack() as stack:
        for agent in SUPERVISED:
            stack.enter_context(store.supervising(agent))
        yield


class NightClock:
    """A clock that shows the times of the night, which ends at 07:14."""

    def __init__(self, now: datetime) -> None:
        self._now = self._time = now

    def __call__(self) -> datetime:
        return self._time

    def find(self, time: str) -> datetime:
        """Return the moment with a time such as `23:41` or `05:10:04`."""
        hours, minutes, seconds = (*map(int, time.split(":")), 0)[:3]
        before = timedelta(hours=7, minutes=14) - timedelta(
            hours=hours, minutes=minutes, seconds=seconds
        )
        return self._now - (before + timedelta(days=1) if before < timedelta() else before)

    def set(self, time: str) -> datetime:
        self._time = self.find(time)
        return self._time


class AgentNightWriter:
    """Writes one agent's events at given times."""

    def __init__(
        self, store: FileStore, agent: str, clock: NightClock, harness: str = "claude-code"
    ) -> None:
        self.store, self.agent, self.clock, self.harness = store, agent, clock, harness
        self._launch, self._cycle, self._session, self._count = "", 0, "", 0
        self._usd, self._tokens = 0.0, 0

    @contextmanager
    def writing(self, time: str) -> Iterator[Writer]:
        self.clock.set(time)
        with self.store.writer(self.agent) as writer:
            yield writer

    def add(self, time: str, *kinds: tuple[type[Event], dict[str, Any]]) -> None:
        made: list[Any] = [kind(**{"ts": self.clock.find(time), **more}) for kind, more in kinds]
        with self.writing(time) as writer:
            writer.append(*made)

    def start(self, time: str, cycle: int, session: str, *, how: str = "") -> None:
        """Record a launch; `how` is `resume` or the path of a checkpoint."""
        self._count += 1
        self._launch, self._session = f"{self.agent}-launch-{self._count}", session
        made: list[tuple[type[Event], dict[str, Any]]] = []
        if cycle != self._cycle:
            self._cycle = cycle
            made.append((events.CycleStarted, {"cycle": cycle}))
        known = {"launch": self._launch, "session": session, "harness": self.harness}
        started = {"cycle": cycle, "resumes": how == "resume", **known}
        made.append((events.LaunchStarted, started))
        if how not in {"", "resume"}:
            handed = {"launch": self._launch, "cycle": cycle, "count": self._handoffs(cycle)}
            made.append((events.HandoffResumed, {**handed, "checkpoint": how}))
        made.append((events.SessionStarted, {**known, "source": "startup"}))
        self.add(time, *made)

    def _handoffs(self, cycle: int) -> int:
        exits = self.store.read(self.agent).projection.attempts.values()
        return sum(one.cycle == cycle and one.exit == "handoff" for one in exits)

    def spend(self, time: str, usd: float, tokens: int, fill: int) -> None:
        """Record the run's spending, and how many tokens are in the window."""
        self._usd, self._tokens = usd, tokens
        measured = {"tokens": fill, "window": WINDOW, "known": "reported"}
        self.add(
            time,
            (events.SpendRecorded, {"launch": self._launch, "usd": usd, "tokens": tokens}),
            (events.WindowMeasured, {"launch": self._launch, **measured}),
            (events.Heartbeat, {"session": self._session, "tool": "Bash"}),
        )

    def end(self, time: str, exit_kind: str, fill: int, words: str = "", **more: Any) -> None:
        """Record the end of the launch."""
        known = {"launch": self._launch, "cycle": self._cycle, "session": self._session}
        usage = {"tokens": fill, "window": WINDOW, "known": "reported"}
        spent = {"run_usd": self._usd, "run_tokens": self._tokens}
        made: list[tuple[type[Event], dict[str, Any]]] = []
        if exit_kind == "handoff":
            made.append(
                (events.HandoffTriggered, {**known, **usage, "by": "threshold", "threshold": 70})
            )
        ended = {**known, **usage, **spent, "exit": exit_kind, "words": words, "opened": True}
        self.add(time, *made, (events.LaunchEnded, {**ended, **more}))

    def hand_off(self, time: str, fill: int) -> str:
        """End the launch for a handoff, and return the path of the checkpoint."""
        self.end(time, "handoff", fill)
        with self.writing(time) as writer:
            made = {"document": "checkpoint", "how": "headless", "turns": 88, "seconds": 38.0}
            spent = {"run_usd": self._usd, "run_tokens": self._tokens}
            writer.append(events.SummaryMade(ts=self.clock(), **made, **spent))
            return writer.commit_checkpoint(parse_checkpoint(CHECKPOINT), by="summarizer").path

    def commit_relay(self, time: str, fields: dict[str, str]) -> str:
        with self.writing(time) as writer:
            return writer.commit_relay(relay.parse(RELAY.format(**fields)), by="agent").path

    def ask(self, time: str, *new: AnyEvent) -> None:
        """Record events with the questions that they raise."""
        with self.writing(time) as writer:
            terms = QuestionTerms(self.clock(), float("inf"))
            writer.append(*questions.add_questions(writer.projection, new, terms))

    def refuse(self, time: str, tool: str, about: str) -> None:
        """Record a refused tool call, and the question about it."""
        refused = {"launch": self._launch, "cycle": self._cycle, "tool": tool, "about": about}
        with self.writing(time) as writer:
            call = RefusedCall(tool, about, {"command": about})
            terms = QuestionTerms(self.clock(), float("inf"))
            asked = questions.ask_about_calls(writer.projection, [call], self._launch, terms)
            call_refused = events.CallRefused(ts=self.clock(), **refused, of_run=1)
            writer.append(call_refused, *asked)

    def answer(self, time: str, text: str, by: str) -> None:
        with self.writing(time) as writer:
            asked = questions.list_open_questions(writer.projection, self.clock())[-1]
            made = answers.make_answer(writer.projection, asked, text, self.clock())
            fields = {"by": by, "host": "desk", "origin": "command"}
            writer.append(msgspec.structs.replace(made, **fields))

    def archive(self, session: str, first: str, last: str, fill: list[int]) -> None:
        """Archive a session with a turn every few minutes, and a window that fills up."""
        began, ended = self.clock.find(first), self.clock.find(last)
        count = max(2, int((ended - began) / timedelta(minutes=4)))
        turns = [
            Turn(
                number=number + 1,
                who="agent",
                at=(began + (ended - began) * number / count).isoformat(timespec="milliseconds"),
                text=f"Step {number}: POST /profile needs validation in src/api.py.",
                calls=(ToolCall(tool, about, "ok", shown),),
                read=fill[0] + (fill[1] - fill[0]) * number // count,
                written=400,
                model="claude-sonnet-4-5",
            )
            for number in range(1, count + 1)
            for tool, about, shown in [WORK[number % len(WORK)]]
        ]
        folder = self.store.folder(self.agent).transcripts
        folder.mkdir(parents=True, exist_ok=True)
        note = ArchivedTranscript(session=session, harness=self.harness, began=turns[0].at)
        TranscriptArchive(folder).add(note, turns, lambda written: written)


def _record_trades(night: AgentNightWriter) -> None:
    """Record a night with a crash, two handoffs, a usage limit, a stall and two questions."""
    started = {"desired": "running", "cycles": 10}
    night.add("21:59", (events.DesiredSet, started), (events.RunStarted, {}))
    night.start("22:00", 1, "session-1")
    night.spend("22:40", 0.2, 300_000, 48_000)
    loops = {
        "who-may-change": "Who may change a profile?",
        "flaky-api": "A test of api.py is flaky",
    }
    for loop, text in (loops | {"rate-limit": "Choose the limit of updates"}).items():
        night.add("22:41", (events.LoopAdded, {"id": loop, "text": text}))
    night.end("23:41", "crash", 96_000, "ended by SIGKILL", code=-9, swept=2)
    night.start("23:41:04", 1, "session-1", how="resume")
    night.spend("23:55", 0.6, 800_000, 104_000)
    night.end("00:05", "clean", 112_000)
    path = night.commit_relay("00:05:10", RELAYS[0])
    night.add("00:05:20", (events.CycleEnded, {"cycle": 1, "how": "draft", "relay": path}))
    night.start("00:06", 2, "session-2")
    night.spend("00:30", 1.0, 1_500_000, 90_000)
    checkpoint = night.hand_off("00:52", 142_000)
    night.start("00:52:38", 2, "session-3", how=checkpoint)
    night.spend("01:30", 1.5, 2_300_000, 60_000)
    hint = "You've hit your limit · resets 5:10am"
    night.end("02:00", "limit", 84_000, "a usage limit was reached", hint=hint, refused=1)
    night.refuse("02:00", "Bash", "git push origin main")
    waits = {"why": "limit", "until": night.clock.find("05:10")}
    night.add("02:00:01", (events.WaitStarted, waits))
    night.start("05:10:04", 2, "session-3", how="resume")
    night.spend("05:30", 2.0, 3_100_000, 128_000)
    checkpoint = night.hand_off("05:41", 142_600)
    night.start("05:41:31", 2, "session-4", how=checkpoint)
    for loop in ("who-may-change", "flaky-api"):
        night.add("05:58", (events.LoopResolved, {"id": loop, "reason": "done in this cycle"}))
    night.end("06:05", "clean", 61_000)
    path = night.commit_relay("06:05:10", RELAYS[1])
    work = events.WorkSigns(commits=4, resolved=2)
    ended = {"verdict": "progress", "words": "4 commits, 2 resolved loops", "signs": work}
    night.add("06:05:20", (events.CycleEnded, {"cycle": 2, "how": "draft", "relay": path, **ended}))
    _record_morning(night, path)
    for session, first, last, *fill in SESSIONS:
        night.archive(session, first, last, fill)


def _record_morning(night: AgentNightWriter, path: str) -> None:
    """Record a cycle that stalls, and one that ends with a question; `path` is the relay's."""
    night.start("06:06", 3, "session-5")
    night.answer("06:20", "allow", "ann")
    night.spend("06:25", 2.7, 4_000_000, 52_000)
    night.end("06:30", "clean", 55_000)
    stalled = "the agent wrote no relay, and there is no visible work"
    ended = {"verdict": "stalled", "words": stalled, "about": "Limit the updates of one client."}
    night.add(
        "06:30:20", (events.CycleEnded, {"cycle": 3, "how": "carried", "relay": path, **ended})
    )
    night.start("06:31", 4, "session-6")
    night.spend("06:50", 3.1, 4_500_000, 74_000)
    night.end("07:00", "clean", 80_000)
    path = night.commit_relay("07:00:10", RELAYS[2])
    ended = {"verdict": "waiting", "words": QUESTION, "about": QUESTION}
    night.add("07:00:20", (events.CycleEnded, {"cycle": 4, "how": "draft", "relay": path, **ended}))
    words = f"it waits for a person: {QUESTION}"
    at = night.clock.find("07:02")
    night.ask("07:02", events.SafeModeEntered(ts=at, why="waiting", words=words))


def _record_others(store: FileStore, clock: NightClock) -> None:
    """Record an agent that runs, one that waits, one that was stopped, and one that is done."""
    begun = [(events.DesiredSet, {"desired": "running", "cycles": 10}), (events.RunStarted, {})]
    docs = AgentNightWriter(store, "docs", clock, "codex")
    docs.add("05:59", *begun)
    docs.start("06:00", 1, "docs-1")
    docs.end("06:40", "clean", 60_000)
    ended = {"cycle": 1, "verdict": "progress", "words": "2 commits"}
    docs.add("06:40:10", (events.CycleEnded, ended))
    docs.start("06:41", 2, "docs-2")
    docs.spend("07:13:40", 0.9, 1_100_000, 76_000)
    api = AgentNightWriter(store, "api", clock, "gemini")
    api.add("03:00", *begun)
    api.start("03:01", 1, "api-1")
    api.spend("06:10", 6.4, 7_000_000, 110_000)
    api.end("06:14", "limit", 110_000, "a usage limit was reached")
    api.add(
        "06:14:01", (events.WaitStarted, {"why": "limit", "until": clock() + timedelta(hours=2)})
    )
    infra = AgentNightWriter(store, "infra", clock)
    infra.add("01:00", *begun)
    infra.start("01:01", 1, "infra-1")
    for time in ("01:02", "01:03", "01:04"):
        infra.end(time, "crash", 18_000, "exit code 1: cannot read state.tf", code=1)
        infra.start(f"{time}:30", 1, "infra-1", how="resume")
    infra.spend("01:10", 0.1, 90_000, 18_000)
    infra.end("01:12", "interrupted", 18_000, "ended by SIGTERM")
    infra.add("01:12:01", (events.DesiredSet, {"desired": "stopped"}))
    web = AgentNightWriter(store, "web", clock)
    web.add("23:00", *begun)
    web.start("23:01", 1, "web-1")
    web.spend("00:30", 2.2, 2_600_000, 42_000)
    web.end("00:40", "clean", 44_000)
    web.add(
        "00:40:10",
        (events.CycleEnded, {"cycle": 1, "until": "passed"}),
        (events.RunEnded, {"why": "done"}),
    )
