"""A project whose agents ask questions, and a bridge that the test runs step by step."""

from datetime import UTC, datetime, timedelta

from phone.telegram_double import TOKEN
from rekindle import config
from rekindle.api.trusted_homes import TrustedHomes
from rekindle.documents import events
from rekindle.documents.phone.phone_records import PairedChat, PhoneSettings
from rekindle.phone import bridge as bridges
from rekindle.phone import bridge_projects
from rekindle.policy.operator.questions import list_open_questions
from rekindle.stores.folders.phone_files import PhoneFiles
from rekindle.wiring.access import trust_checks
from rekindle.wiring.open_store import open_store

MANIFEST = """\
version: 1
agents:
  trades: {harness: command, command: ["true"], prompt: task.md}
  docs: {harness: command, command: ["true"], prompt: task.md}
"""
ME, STRANGER = 42, 66
CALL = {"tool": "Bash", "arguments": {"command": "git push origin main"}}


class AskingProject:
    """A trusted project whose agents ask questions."""

    def __init__(self, folder):
        folder.mkdir(parents=True)
        (folder / "rekindle.yaml").write_text(MANIFEST)
        (folder / "task.md").write_text("Build the form.")
        self.path = folder
        self.project = config.load_project(folder)
        trust_checks.accept_project(self.project)
        self.store = open_store(self.project)

    def ask(self, agent="trades", *, minutes=60, **changes):
        """Record a question about a call, and return its id."""
        self.store.create(agent)
        known = self.store.read(agent).projection
        number = len(known.questions) + 1
        now = datetime.now(UTC)
        question = events.QuestionAsked(
            **{
                "ts": now,
                "question": f"{agent}-{number}",
                "number": number,
                "about": "permission",
                "text": "permission for a call that was refused: Bash git push",
                "request": CALL,
                "choices": ("allow", "deny"),
                "default": "deny",
                "deadline": now + timedelta(minutes=minutes),
                **changes,
            }
        )
        with self.store.writer(agent) as writer:
            writer.append(question)
        return question.question

    def ask_in_safe_mode(self, agent="trades", *, about="stalled", **changes):
        """Record a question that blocks the agent."""
        self.store.create(agent)
        now = datetime.now(UTC)
        with self.store.writer(agent) as writer:
            writer.append(
                events.DesiredSet(ts=now, desired="running"),
                events.RunStarted(ts=now),
                events.SafeModeEntered(ts=now, why=about, words="stuck"),
            )
        return self.ask(agent, about=about, text="several cycles without progress", **changes)

    def answers(self, agent="trades"):
        """Return the answers that count: choice or text, and author, by question."""
        known = self.store.read(agent).projection
        return {
            name: (answer.choice or answer.text, answer.by, answer.origin)
            for name, answer in known.answers.items()
        }

    def opened(self, agent="trades"):
        known = self.store.read(agent).projection
        return [each.question for each in list_open_questions(known, datetime.now(UTC))]


class Desk:
    """The bridge, run step by step."""

    def __init__(self, double):
        self.double = double
        self.told = []
        self.restart()

    def restart(self):
        """Start the bridge again, as after a kill: only files remain."""
        self.files = PhoneFiles()
        projects = bridge_projects.BridgeProjects(TrustedHomes())
        self.bridge = bridges.Bridge(self.files, projects, self.told.append)

    def pair(self, chat=ME, user=None, right="answer"):
        paired = PairedChat("telegram", str(chat), str(user or chat), right, datetime.now(UTC))
        channels = {"telegram": {"token": TOKEN, "server": self.double.url}}

        def add(current):
            chats = (*current.chats, paired)
            return PhoneSettings(channels=channels | current.channels, chats=chats)

        self.files.change_settings(add)

    def send(self):
        self.bridge.send_questions()

    def receive(self):
        """Handle the updates that wait at the service."""
        assert self.double.updates, "nothing to receive"
        self.bridge._receive("telegram", self.bridge._find_channel("telegram"))

    def ask_phone(self, text, **more):
        """Send a command from the phone, and return the replies."""
        before = len(self.double.texts(ME))
        self.double.say(ME, text, **more)
        self.receive()
        return self.double.texts(ME)[before:]
