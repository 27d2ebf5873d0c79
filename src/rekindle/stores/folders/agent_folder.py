"""The files in an agent's folder."""

import secrets
from pathlib import Path

import msgspec

from rekindle.documents.manifest import SCHEMA_FILE
from rekindle.errors import translate_os_errors
from rekindle.formats.identifiers import (
    AGENT_NAME,
    require_agent_name,
)
from rekindle.stores.folders.brake_files import BrakeFiles
from rekindle.stores.folders.private_files import (
    PrivateAgent,
    PrivateProject,
)
from rekindle.system.files import durable_files, file_status, safe_folders

REKINDLE_FOLDER = safe_folders.REKINDLE_FOLDER_NAME
_README = """\
Rekindle stores its agents' state here. Your agents' work is elsewhere; this is what lets
them continue after a crash.

agents/NAME/memories/consensus.md   the relay: what the next cycle does. You may edit it.
agents/NAME/progress.md             what its cycles did, newest first. For you; it is regenerated.
agents/NAME/state.json              open loops, resolved ones, numbers. You may add to it.
agents/NAME/ops.jsonl               the log, from which all else is derived. Do not edit it.
agents/NAME/memories/archive/       every past relay, and the text trimmed from them.
agents/NAME/transcripts/            the transcripts of its sessions, without secrets.
agents/NAME/run/                    this host's locks and inbox. Leave it alone.
drafts/NAME/relay.md                the next relay, while an agent writes it.
exports/NAME.rekindle               what `rekindle export` wrote.
rekindle.schema.json                the JSON Schema of rekindle.yaml, for your editor.

Look at it with `rekindle status`, `rekindle events`, `rekindle relay show`.
`rekindle doctor` reports any problems with it.
"""


class AgentFolder(msgspec.Struct, frozen=True):
    path: Path
    private: PrivateAgent | None = None
    """The agent's files outside the workspace; None for a replica, which uses a register."""

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
        # Outside the workspace, because a forged snapshot could contain invented events.
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
        """Folder with the rotated copies of resolved.jsonl."""
        return self.memories / "resolved"

    @property
    def briefing(self) -> Path:
        """Lock file that is held while a brief is written."""
        return self.run / "briefing"

    @property
    def brief_tried(self) -> Path:
        """File that counts the attempts to write the next brief."""
        return self.run / "brief-tried.json"

    @property
    def transcripts(self) -> Path:
        """Folder with redacted transcripts, in Rekindle's own format."""
        return self.path / "transcripts"

    @property
    def run(self) -> Path:
        return self.path / "run"

    @property
    def lock(self) -> Path:
        return self.run / "lock"

    @property
    def supervisor(self) -> Path:
        """Lock file of a running supervisor. The hook relies on this name."""
        return self.run / "supervisor"

    @property
    def importing(self) -> Path:
        """Marker of an import that is not finished. The agent cannot be started."""
        return self.run / "importing"

    @property
    def draft(self) -> Path:
        """File in which an agent writes the relay for the next cycle.

        It is outside `agents`, so that a CLI can refuse all other writes below `.rekindle`.
        """
        return self.path.parents[1] / "drafts" / self.name / "relay.md"

    @property
    def progress(self) -> Path:
        """Report on completed cycles, for people to read."""
        return self.path / "progress.md"

    @property
    def clean_exit(self) -> Path:
        """Marker that prevents restarts until the operator's next command."""
        return self.run / ".clean-exit"

    @property
    def fresh(self) -> Path:
        """Marker that requests one fresh session."""
        return self.run / ".fresh"

    @property
    def output(self) -> Path:
        """Output of a background supervisor."""
        return self.run / "output.log"

    def stamp(self) -> tuple[object, ...]:
        """Return a value that changes with every write to the log or an inbox."""
        outside = (self.private.inbox, self.private.seal) if self.private else ()
        own = (file_status.make_file_stamp(path) for path in (self.log, self.owner, *outside[1:]))
        waiting = (file_status.make_folder_stamp(path) for path in (self.inbox, *outside[:1]))
        return (*own, *waiting)

    def archive_draft(self) -> None:
        """Move anything at the draft's path out of the way, even a folder."""
        if durable_files.path_exists(self.draft):
            durable_files.rename_durably(
                self.draft, self.draft.with_name(f"{self.draft.name}.{secrets.token_hex(4)}")
            )

    def read_clean_exit(self) -> str | None:
        data = durable_files.read_bytes(self.clean_exit)
        return data.decode("utf-8", "replace") if data is not None else None

    @property
    def started(self) -> Path:
        """Record of a supervisor that the watchdog has started."""
        return self.run / "started.json"

    def read_start_record(self) -> bytes | None:
        return durable_files.read_bytes(self.started)

    def write_start_record(self, record: bytes) -> None:
        self.make()  # the run folder may be gone
        durable_files.replace_file(self.started, record)

    def remove_start_record(self) -> None:
        durable_files.remove_file(self.started)

    def brakes(self, scratch: str, marks: str = "") -> BrakeFiles:
        """Return the files through which a hook stops a launch whose folder is `scratch`.

        `marks` is the folder for the hook's marker files, if it is a different one.
        """
        rules = Path(scratch) if scratch else self.run
        return BrakeFiles(rules, Path(marks) if marks else rules)

    def remove(self, marker: Path) -> None:
        """Remove a marker file if it exists."""
        durable_files.remove_file(marker)

    def request_fresh_session(self) -> None:
        durable_files.replace_file(self.fresh, b"")

    def write_clean_exit(self, seq: int, outcome: str) -> None:
        """Record a clean exit and its position in the log. Later commands override it."""
        durable_files.replace_file(self.clean_exit, f"{seq} {outcome}\n".encode())

    @property
    def inbox(self) -> Path:
        return self.run / "inbox"

    @property
    def rejected_records(self) -> Path:
        """File for records that this version of Rekindle does not support."""
        return self.run / "inbox.rejected"

    @property
    def audit(self) -> Path:
        """File with the audit trail's last problem, if any."""
        return self.run / "audit.json"

    @property
    def audit_lock(self) -> Path:
        return self.run / "audit.lock"

    def document(self, name: str) -> Path:
        """Return the path at which readers find a document."""
        return {
            "relay": self.memories / "consensus.md",
            "checkpoint": self.path / "checkpoint.md",
            "brief": self.path / "brief.md",
        }[name]

    @property
    def files(self) -> tuple[Path, ...]:
        """Return the regular files that commands may read or lock."""
        state_files = (
            self.log,
            self.state,
            self.resolved,
            self.snapshot,
            self.owner,
            self.progress,
        )
        documents = tuple(self.document(name) for name in ("relay", "checkpoint", "brief"))
        locks = (self.lock, self.supervisor, self.briefing, self.audit_lock)
        markers = (self.clean_exit, self.fresh, self.started, self.brief_tried, self.audit)
        return (*state_files, *documents, *locks, *markers, self.output)

    @property
    def folders(self) -> tuple[Path, ...]:
        own = (self.path, self.memories, self.archive, self.transcripts, self.run, self.inbox)
        return (*own, self.draft.parents[1], self.draft.parent)

    def exists(self) -> bool:
        return durable_files.path_exists(self.path)

    def make(self) -> None:
        """Create missing folders. `run` is specific to this host and may be missing."""
        self.verify()
        for folder in self.folders:
            durable_files.make_folder(folder)

    def confirm(self) -> None:
        """Sync the folders to disk, in case the process that created them was killed."""
        for folder in (self.path.parents[1], self.path.parent, *self.folders):
            durable_files.sync_folder(folder.parent)

    def verify(self) -> None:
        """Raise an error if .rekindle or a folder below it is a symbolic link."""
        for folder in (self.path.parents[1], self.path.parent, *self.folders):
            durable_files.refuse_link(folder)


class RekindleFolder(msgspec.Struct, frozen=True):
    """The .rekindle folder of a project."""

    project: Path
    private: PrivateProject | None = None
    """The project's files outside its folder."""

    @property
    def path(self) -> Path:
        return self.project / REKINDLE_FOLDER

    @property
    def agents(self) -> Path:
        return self.path / "agents"

    @property
    def agent_dirs(self) -> Path:
        """File that maps working folders to agents, one per line. Hooks read it."""
        return self.path / "dirs"

    @property
    def summarizer(self) -> Path:
        """Default instructions for summarizers whose persona does not name a file."""
        return self.path / "personas" / "summarizer.md"

    @property
    def exports(self) -> Path:
        """Folder for exported agents. Git ignores it, because they contain conversations."""
        return self.path / "exports"

    @property
    def schema(self) -> Path:
        """JSON Schema of the manifest. The first line of the manifest refers to it."""
        return self.path / SCHEMA_FILE

    def names(self) -> list[str]:
        """Return the names of all agents that have a folder, even those not in the manifest."""
        with translate_os_errors(self.agents):
            paths = sorted(self.agents.iterdir()) if self.agents.is_dir() else []
        return [path.name for path in paths if AGENT_NAME.match(path.name)]

    def agent(self, name: str) -> AgentFolder:
        private = self.private.agent(name) if self.private else None
        return AgentFolder(self.agents / require_agent_name(name), private)

    def make(self) -> None:
        for folder in (self.path, self.agents):
            durable_files.refuse_link(folder)
            durable_files.make_folder(folder)
        for name, text in (("README", _README), (".gitignore", "*\n")):
            if not durable_files.path_exists(self.path / name):
                durable_files.replace_file(self.path / name, text.encode())
