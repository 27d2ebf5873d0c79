"""An agent's folder: which file stands where."""

import secrets
from pathlib import Path

import msgspec

from rekindle.documents.identity import AGENT_NAME, agent_name
from rekindle.errors import storing
from rekindle.stores.files.brakes import Brakes
from rekindle.stores.private import PrivateAgent, PrivateProject
from rekindle.system import disk, walk

FOLDER = walk.FOLDER
_README = """\
Rekindle keeps its agents' state here. Your agents' work is not in here; this is what lets
them go on after a crash.

agents/NAME/memories/consensus.md   the relay: what the next cycle does. You may edit it.
agents/NAME/progress.md             what its cycles did, newest first. For you; it is made anew.
agents/NAME/state.json              open loops, resolved ones, numbers. You may add to it.
agents/NAME/ops.jsonl               the log, the truth all else is made from. Do not edit it.
agents/NAME/memories/archive/       every relay there ever was, and what was trimmed from them.
agents/NAME/transcripts/            what was said and done in its sessions, without secrets.
agents/NAME/run/                    this host's locks and inbox. Leave it alone.
drafts/NAME/relay.md                the next relay, while an agent writes it.

Look at it with `rekindle status`, `rekindle events`, `rekindle relay show`.
What is wrong with it, `rekindle doctor` says.
"""


class AgentFolder(msgspec.Struct, frozen=True):
    path: Path
    private: PrivateAgent | None = None
    """The agent's files outside the workspace; None for a replica, whose register has them."""

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def state(self) -> Path:
        return self.path / "state.json"

    @property
    def log(self) -> Path:
        return self.path / "ops.jsonl"

    @property
    def resolved(self) -> Path:
        return self.path / "resolved.jsonl"

    @property
    def snapshot(self) -> Path:
        # A forged one would stand for events that never happened: it is kept outside.
        return (self.private.path if self.private else self.path) / "snapshot.json"

    @property
    def owner(self) -> Path:
        return self.path / "owner.json"

    @property
    def memories(self) -> Path:
        return self.path / "memories"

    @property
    def archive(self) -> Path:
        return self.memories / "archive"

    @property
    def resolutions(self) -> Path:
        """What resolved.jsonl was, up to an event each."""
        return self.memories / "resolved"

    @property
    def briefing(self) -> Path:
        """Locked while a brief is written."""
        return self.run / "briefing"

    @property
    def brief_tried(self) -> Path:
        """How often a brief was begun of which nothing has come yet."""
        return self.run / "brief-tried.json"

    @property
    def transcripts(self) -> Path:
        """What was said and done in each session, in our words, compressed."""
        return self.path / "transcripts"

    @property
    def run(self) -> Path:
        return self.path / "run"

    @property
    def lock(self) -> Path:
        return self.run / "lock"

    @property
    def supervisor(self) -> Path:
        """Locked as long as a supervisor lives; hook.py looks at it by this name."""
        return self.run / "supervisor"

    @property
    def draft(self) -> Path:
        """Where an agent writes the relay for the next cycle.

        In a folder of its own, outside `agents`, so that a CLI can be told to refuse every other
        write below `.rekindle`.
        """
        return self.path.parents[1] / "drafts" / self.name / "relay.md"

    @property
    def progress(self) -> Path:
        """What the cycles did, for people."""
        return self.path / "progress.md"

    @property
    def clean_exit(self) -> Path:
        """There while nobody is to start the agent again; the operator's word outranks it."""
        return self.run / ".clean-exit"

    @property
    def fresh(self) -> Path:
        """Asks for one fresh session."""
        return self.run / ".fresh"

    @property
    def output(self) -> Path:
        """What a supervisor says that runs in the background."""
        return self.run / "output.log"

    def stamp(self) -> tuple[object, ...]:
        """Return a value that changes with every write to the log or to an inbox."""
        outside = (self.private.inbox, self.private.seal) if self.private else ()
        own = (disk.stamp(path) for path in (self.log, self.owner, *outside[1:]))
        inboxes = (self.inbox, *outside[:1])
        waiting = (
            disk.stamp(path) for inbox in inboxes for path in (inbox, *sorted(inbox.glob("*")))
        )
        return (*own, *waiting)

    def put_draft_away(self) -> None:
        """Whatever stands where a draft is to be written, a folder even, is kept beside it."""
        if disk.exists(self.draft):
            disk.set_aside(
                self.draft, self.draft.with_name(f"{self.draft.name}.{secrets.token_hex(4)}")
            )

    def clean_exit_says(self) -> str | None:
        found = disk.read(self.clean_exit)
        return found.decode("utf-8", "replace") if found is not None else None

    @property
    def started(self) -> Path:
        """What the watchdog has started, as long as nothing has come of it."""
        return self.run / "started.json"

    def started_says(self) -> bytes | None:
        return disk.read(self.started)

    def note_started(self, said: bytes) -> None:
        self.make()  # a supervisor that is gone may have lost its run folder too
        disk.replace(self.started, said)

    def forget_started(self) -> None:
        disk.remove(self.started)

    def weigh(self, launch: str) -> Path:
        """There while a session that goes on is to wait for the word whether it may."""
        return self.run / f"weigh-{launch}"

    def brakes(self, scratch: str) -> Brakes:
        """Return the files by which a launch is stopped; `scratch`: the launch's own folder."""
        return Brakes(Path(scratch) if scratch else self.run)

    def remove(self, marker: Path) -> None:
        """Remove one of the markers, if it is there."""
        disk.remove(marker)

    def ask_for_fresh(self) -> None:
        disk.replace(self.fresh, b"")

    def mark_clean_exit(self, seq: int, outcome: str) -> None:
        """Say that it ended as intended, and where in the log: a later word makes it void."""
        disk.replace(self.clean_exit, f"{seq} {outcome}\n".encode())

    @property
    def inbox(self) -> Path:
        return self.run / "inbox"

    @property
    def rejected_records(self) -> Path:
        """Records of kinds that this Rekindle does not know, one to a line."""
        return self.run / "inbox.rejected"

    @property
    def audit(self) -> Path:
        """What stands in the way of the git audit trail, if anything does."""
        return self.run / "audit.json"

    @property
    def audit_lock(self) -> Path:
        return self.run / "audit.lock"

    def document(self, name: str) -> Path:
        """Where a committed document stands for readers."""
        return {
            "relay": self.memories / "consensus.md",
            "checkpoint": self.path / "checkpoint.md",
            "brief": self.path / "brief.md",
        }[name]

    @property
    def files(self) -> tuple[Path, ...]:
        """The plain files that every command may have to read or to lock."""
        kept = (self.log, self.state, self.resolved, self.snapshot, self.owner, self.progress)
        documents = tuple(self.document(name) for name in ("relay", "checkpoint", "brief"))
        locks = (self.lock, self.supervisor, self.briefing, self.audit_lock)
        markers = (self.clean_exit, self.fresh, self.started, self.brief_tried, self.audit)
        return (*kept, *documents, *locks, *markers, self.output)

    @property
    def folders(self) -> tuple[Path, ...]:
        own = (self.path, self.memories, self.archive, self.transcripts, self.run, self.inbox)
        return (*own, self.draft.parents[1], self.draft.parent)

    def exists(self) -> bool:
        return disk.exists(self.path)

    def make(self) -> None:
        """Make what is missing: `run` belongs to this host and may be gone."""
        self.verify()
        for folder in self.folders:
            disk.make_folder(folder)

    def confirm(self) -> None:
        """Have the disk confirm the folders' own names, whoever made them and was killed then."""
        for folder in (self.path.parents[1], self.path.parent, *self.folders):
            disk.sync_folder(folder.parent)

    def verify(self) -> None:
        """Refuse links where our folders should be, from .rekindle down."""
        for folder in (self.path.parents[1], self.path.parent, *self.folders):
            disk.refuse_link(folder)


class Root(msgspec.Struct, frozen=True):
    """The .rekindle folder of a project."""

    project: Path
    private: PrivateProject | None = None
    """The project's files outside it."""

    @property
    def path(self) -> Path:
        return self.project / FOLDER

    @property
    def agents(self) -> Path:
        return self.path / "agents"

    @property
    def agent_dirs(self) -> Path:
        """The folder that each agent works in, as lines for hooks."""
        return self.path / "dirs"

    @property
    def summarizer(self) -> Path:
        """What whoever summarizes is told, where its persona names no file of its own."""
        return self.path / "personas" / "summarizer.md"

    def names(self) -> list[str]:
        """Return the agents that have a folder, whatever the manifest says."""
        with storing(self.agents):
            found = sorted(self.agents.iterdir()) if self.agents.is_dir() else []
        return [path.name for path in found if AGENT_NAME.match(path.name)]

    def agent(self, name: str) -> AgentFolder:
        private = self.private.agent(name) if self.private else None
        return AgentFolder(self.agents / agent_name(name), private)

    def make(self) -> None:
        for folder in (self.path, self.agents):
            disk.refuse_link(folder)
            disk.make_folder(folder)
        for name, text in (("README", _README), (".gitignore", "*\n")):
            if not disk.exists(self.path / name):
                disk.replace(self.path / name, text.encode())
