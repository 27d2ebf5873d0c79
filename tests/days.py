"""Days of an agent for tests: sessions in Claude Code's format, and models that summarize them."""

import json
import re
from zoneinfo import ZoneInfo

from rekindle.documents import events
from rekindle.documents.launches.one_shot import OneShotAnswer
from rekindle.flows.briefs.brief_material import BriefPorts
from rekindle.flows.briefs.write_brief import BriefWriter
from rekindle.flows.transcripts.archive_transcripts import TranscriptArchiver
from rekindle.harnesses.claude_code import claude_harness
from rekindle.policy.briefs.claim_check import GitWork
from rekindle.policy.settings.runtime_settings import RuntimeSettings

NOTHING = {
    "Changed": [],
    "Next": [],
    "Risk": [],
    "open_loops": [],
    "resolved": [],
    "numbers": [],
}


class Model:
    """A model that gives its answers in order; a function is called, an exception raised."""

    def __init__(self, *answers):
        self.answers, self.prompts = list(answers), []

    def __call__(self, request):
        self.prompts.append(request.prompt)
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        if callable(found):
            found = found(request)
        text = found if isinstance(found, str) else json.dumps({**NOTHING, **found})
        return OneShotAnswer(text, 0.25, 100)


def turn_of(prompt, words):
    """Return the number of the turn with this text."""
    before = prompt[: prompt.index(words)]
    return int(re.findall(r"^\| \[(\d+)\] ", before, re.MULTILINE)[-1])


class Shop:
    """An agent whose sessions are written by the test, and whose briefs are requested."""

    def __init__(self, store, clock, folder, *, work=GitWork(), runtime=None):  # noqa: B008 - it is frozen
        self.store, self.clock, self.folder = store, clock, folder
        self.runtime, self.work = runtime or RuntimeSettings(), work
        self.zone = ZoneInfo("Europe/Berlin")
        self.asked_since = []
        self.sessions = 0
        self.task = ""

    def session(self, name="", launch=""):
        self.sessions += 1
        name = name or f"s-{self.sessions}"
        path = self.folder / f"{name}.jsonl"
        path.touch()
        with self.store.writer("trades") as writer:
            started = events.SessionStarted(
                ts=self.clock(),
                session=name,
                harness="claude-code",
                transcript=str(path),
                launch=launch,
            )
            writer.append(started)
        return Session(self, name, path)

    def writing(self, model):
        def work(since):
            self.asked_since.append(since)
            return self.work

        around = BriefPorts(
            ask=model,
            archive=TranscriptArchiver(self.store, "trades", [claude_harness]).all,
            work=work,
            clock=self.clock,
            zone=self.zone,
            runtime=self.runtime,
            task=self.task,
        )
        return BriefWriter(self.store, "trades", around)

    def brief(self, *answers, due=None):
        """Write a brief, and keep the requests to the model."""
        self.model = Model(*answers)
        return self.writing(self.model if answers else _refuse).write(due)

    @property
    def state(self):
        return self.store.read("trades").projection

    @property
    def open(self):
        return {one.id: one.text for one in self.state.loops.values() if one.is_open}

    def text(self):
        return self.store.folder("trades").document("brief").read_text()

    def log(self, kind=None):
        found = self.store.events_since("trades", 0).events
        return [one for one in found if kind is None or isinstance(one, kind)]


def _refuse(request):
    raise AssertionError("no model may be asked")


class Session:
    def __init__(self, shop, name, path):
        self.shop, self.name, self.path = shop, name, path
        self.count = 0

    def _write(self, kind, content, **more):
        self.count += 1
        self.shop.clock.forward(minutes=1)
        message = {"role": kind, "content": content, **more}
        line = {"type": kind, "timestamp": self.shop.clock().isoformat(), "message": message}
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def asks(self, text):
        self._write("user", text)

    def says(self, text):
        content = [{"type": "text", "text": text}]
        self._write("assistant", content, id=f"{self.name}-{self.count}", model="m")

    def runs(self, command, shown, *, ok=True):
        call = f"{self.name}-c{self.count}"
        use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}
        self._write("assistant", [use], id=f"{self.name}-{self.count}", model="m")
        result = {
            "type": "tool_result",
            "tool_use_id": call,
            "content": shown,
            "is_error": not ok,
        }
        self._write("user", [result])

    def beats(self):
        with self.shop.store.writer("trades") as writer:
            writer.append(events.Heartbeat(ts=self.shop.clock(), session=self.name))

    def ends(self):
        with self.shop.store.writer("trades") as writer:
            writer.append(events.SessionEnded(ts=self.shop.clock(), session=self.name))


def without_times(text):
    return re.sub(r"\d{4}-\d\d-\d\d(T[\d:.]+(Z|\+00:00))?", "TIME", text)


def plain_state(shop):
    """Return state.json without its times."""
    raw = json.loads((shop.store.folder("trades").state).read_bytes())
    return {key: value for key, value in raw.items() if key not in {"seq", "check"}}
