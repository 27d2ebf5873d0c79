"""A night in which every text of an agent or a person contains markup that runs a script."""

from pathlib import Path

import recorded_night
from recorded_night import AgentNightWriter, NightClock
from rekindle.config import load_project
from rekindle.documents import events
from rekindle.stores.files import FileStore
from rekindle.stores.folders.private_files import find_private_project
from rekindle.system import clock, host

FOLDER = "shop<img src=x onerror=executed.push(document.title)>"
"""Name of the project's folder."""
FIELDS = (
    *("crash", "phase", "did", "decided", "metrics", "next", "asks", "verdict", "about"),
    *("loop", "resolved", "refused", "question", "answer", "by", "turn", "call", "shown"),
)


def make_markup(field: str) -> str:
    """Return a text that runs a script if it is shown as HTML, and can be found as text."""
    run = f"executed.push('{field}')"
    return f'<img src=x onerror="{run}"><script>{run}</script><b>{field}</b>'


class HostileWriter(AgentNightWriter):
    """Writes an agent's events, with markup in the transcripts."""

    def archive_markup(self, session: str) -> None:
        work, recorded_night.WORK = recorded_night.WORK, ((*map(make_markup, FIELDS[-3:]),),)
        try:
            self.archive(session, "06:31", "07:00", [18_000, 80_000])
        finally:
            recorded_night.WORK = work


def write_hostile_night(folder: Path) -> Path:
    """Write the project into a folder below this one, and return it."""
    project = folder / FOLDER
    project.mkdir()
    (project / "rekindle.yaml").write_text(recorded_night.MANIFEST)
    time = NightClock(clock.read_clock())
    found = load_project(project)
    store = FileStore(
        project,
        host=host.identify_host(),
        settings=found.settings,
        clock=time,
        private=find_private_project(project),
    )
    text = {field: make_markup(field) for field in FIELDS}
    _record(HostileWriter(store, "trades", time), text)
    running = {"desired": "running", "cycles": 10}
    infra = HostileWriter(store, "infra", time)
    infra.add("05:59", (events.DesiredSet, running), (events.RunStarted, {}))
    infra.start("06:00", 1, "infra-1")
    infra.end("06:40", "crash", 60_000, text["crash"], code=1)
    at = time.find("07:00")
    infra.ask("07:00", events.SafeModeEntered(ts=at, why="crash", words=text["crash"]))
    return project


def _record(night: HostileWriter, text: dict[str, str]) -> None:
    running = {"desired": "running", "cycles": 10}
    night.add("04:59", (events.DesiredSet, running), (events.RunStarted, {}))
    night.start("05:00", 1, "session-1")
    for loop in ("open", "closed"):
        night.add("05:01", (events.LoopAdded, {"id": loop, "text": text["loop"]}))
    night.add("05:02", (events.LoopResolved, {"id": "closed", "reason": text["resolved"]}))
    night.end("05:40", "crash", 96_000, text["crash"], code=1)
    night.start("05:41", 1, "session-1", how="resume")
    night.end("05:50", "limit", 84_000, text["crash"], hint=text["crash"], refused=1)
    night.refuse("05:50", "Bash", text["refused"])
    _ask(night, "05:52", text["question"])
    night.answer("05:55", text["answer"], text["by"])
    night.start("06:31", 1, "session-2", how="resume")
    night.end("07:00", "clean", 80_000)
    fields = {name: f"- {text[name]}" for name in ("did", "decided", "asks")}
    fields |= {name: text[name] for name in ("phase", "metrics")} | {"following": text["next"]}
    for letter in "ab":
        path = night.commit_relay("07:00:10", {**fields, "metrics": text["metrics"] + letter})
    ended = {"verdict": "waiting", "words": text["verdict"], "about": text["about"]}
    night.add("07:00:20", (events.CycleEnded, {"cycle": 1, "how": "draft", "relay": path, **ended}))
    _ask(night, "07:02", text["question"])
    night.archive_markup("session-2")


def _ask(night: HostileWriter, time: str, question: str) -> None:
    words = f"it waits for a person: {question}"
    at = night.clock.find(time)
    night.ask(time, events.SafeModeEntered(ts=at, why="waiting", words=words))
