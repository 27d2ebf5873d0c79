"""The `rekindle demo` steps, which run in a temporary folder."""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from rekindle import config
from rekindle.demo import stand_in_agent as stand_in
from rekindle.documents import events, manifest, manifest_edit
from rekindle.documents.launches.launch_types import (
    SessionOpened,
    ToolCallStarted,
)
from rekindle.errors import AgentError
from rekindle.flows.supervisor_ports import (
    ExitReport,
    LaunchReport,
    SupervisorReport,
)
from rekindle.formats.counts import render_count
from rekindle.stores.files import FileStore
from rekindle.system import clock
from rekindle.system.processes import launch_processes
from rekindle.wiring.access import trust_checks
from rekindle.wiring.open_store import open_store
from rekindle.wiring.supervisor_setup import run_supervisor

AGENT = "novelist"
TASK = f"Write {stand_in.CHAPTERS} chapters, one file each. Look at what is there first.\n"
RELAY = f"""\
## Current Phase
Writing

## Key Decisions Made
- One file a chapter: a lost file is a lost chapter, and no more

## Next Action
Write chapter-1.md to chapter-{stand_in.CHAPTERS}.md
"""
_PATIENCE_SECONDS = 10.0
_NOTICE_LINES = 6
FIRST_KILL, SECOND_KILL = 3, 5
"""Chapters in which the demo kills the agent."""


HASTE = "runtime: {restart: {cooldown: 0s}, relay: {summarizer: mechanical}}\n"
"""Settings that keep the demo short."""


class DemoCounts(msgspec.Struct, frozen=True):
    """Counts in the demo's summary."""

    chapters: int
    heartbeats: int
    sessions: int


class Demonstration:
    """Runs a real cycle with a scripted agent, and kills the agent twice."""

    def __init__(self, folder: Path, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._say = say
        self._kills = [FIRST_KILL, SECOND_KILL]
        self._state = folder / stand_in.STATE_FOLDER
        self._state.mkdir(parents=True)
        for number in self._kills:
            (self._state / f"{stand_in.SLOW_PREFIX}chapter-{number}.md").touch()
        self._session = ""
        self._takes_over = False

    def run(self) -> DemoCounts | None:
        """Run the demo and return its results, or None if the user stopped it."""
        (self._folder / manifest.MANIFEST_FILE).write_text(
            manifest_edit.compose(AGENT, "claude-code", "PROMPT.md") + HASTE, encoding="utf-8"
        )
        (self._folder / "PROMPT.md").write_text(TASK, encoding="utf-8")
        project = config.load_project(self._folder)
        store = self._store = open_store(project)
        store.submit(AGENT, events.RelayProposed(ts=clock.read_clock(), text=RELAY, by="person"))
        self._say("1. An agent has a task, and a relay from the previous cycle.")
        self._say(f"   Next Action: {RELAY.splitlines()[-1]}")
        self._say("2. It works, and a hook reports every tool call.")
        program = (sys.executable, "-I", str(Path(stand_in.__file__)))
        trust_checks.accept_folder(self._folder)
        try:
            result = run_supervisor(
                project, store, AGENT, self._handle_report, once=True, program=program, cycles=1
            )
            return self._count_results(store) if result.outcome != "stopped" else None
        finally:
            trust_checks.forget_folder(self._folder)

    def _handle_report(self, report: SupervisorReport) -> None:
        match report:
            case LaunchReport(resumes=True):
                self._say("   Rekindle starts it again, in the same session.")
            case LaunchReport():
                self._session = report.session
                self._takes_over = report.recovery
            case SessionOpened() if self._takes_over:
                self._takes_over = False
                self._say("   A fresh session takes over. Its prompt begins with:")
                self._say(self._read_notice(report.session))
            case ToolCallStarted():
                self._say(f"   · {report.tool} {report.about}")
                self._maybe_kill(report)
            case ExitReport() if report.exit.kind == "crash":
                processes = render_count(report.swept, "process", "processes")
                self._say(
                    f"   {report.exit.words}; its tool was still running"
                    f" ({processes}): Rekindle finds it and ends it first."
                )
            case ExitReport() if report.exit.kind == "resume-failed":
                self._say("   The old session cannot be resumed: it is gone.")
            case _:
                pass

    def _maybe_kill(self, call: ToolCallStarted) -> None:
        if not self._kills or call.about != f"chapter-{self._kills[0]}.md":
            return
        pid = int(call.call.split("_")[1])
        if not self._tool_works(pid, call.about):
            return  # the user has stopped the demo
        is_first = len(self._kills) == 2  # noqa: PLR2004 - both kills are left
        self._kills.pop(0)
        if is_first:
            self._say(f"3. Now it is killed during that tool call: kill -9 {pid}")
        else:
            self._say(
                f"4. It is killed again, and this time its session is destroyed too: kill -9 {pid}"
            )
            (self._state / f"session-{self._session}").unlink()
        os.kill(pid, signal.SIGKILL)

    def _tool_works(self, pid: int, file: str) -> bool:
        """Wait until the agent's tool has started. Return False if the agent exits first."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if launch_processes.identify(pid) is None:
                return False
            if (self._state / f"begun-{pid}-{file}").exists():
                return True
            time.sleep(0.01)
        raise AgentError("the demo's tool did not start", hint="run the demo again")

    def _read_notice(self, session: str) -> str:
        """Return the recovery notice that one of the session's hooks reported."""
        prompt = self._store.read(AGENT).projection.lives[session].asked
        notice = prompt.text.splitlines()[:_NOTICE_LINES] if prompt else []
        return "\n".join(f"     {line}" for line in notice)

    def _count_results(self, store: FileStore) -> DemoCounts:
        happened = store.events_since(AGENT, 0).events
        return DemoCounts(
            chapters=len(list(self._folder.glob("chapter-*.md"))),
            heartbeats=sum(isinstance(event, events.Heartbeat) for event in happened),
            sessions=len(
                {event.session for event in happened if isinstance(event, events.LaunchStarted)}
            ),
        )
