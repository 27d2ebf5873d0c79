"""The agent that the server serves, found by the launch or by the folder.

The server reads the agent's files without its manifest if necessary, because a sandbox may hide
both the manifest and the user's Rekindle folder. It writes only to the agent's inbox in the
workspace, where every record counts as written by the agent.
"""

import os
from pathlib import Path
from threading import RLock

from rekindle import config
from rekindle.config import Project
from rekindle.documents.events import Event
from rekindle.errors import NotFoundError, RekindleError, UsageError
from rekindle.flows.launches.sandboxed_start import MARKS_VARIABLE
from rekindle.plugins import HookReaders
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files.store_reader import StoreReader
from rekindle.stores.folders import private_files
from rekindle.stores.folders.agent_folder import AgentFolder
from rekindle.stores.log import inbox
from rekindle.stores.log.view import AgentView
from rekindle.system import host
from rekindle.wiring.access import operator_check, trust_checks
from rekindle.wiring.agent_dir_list import choose_agent
from rekindle.wiring.open_store import HARNESSES, open_store


class ServedAgent:
    """One agent's files, as its own server may use them."""

    def __init__(self, name: str, project: Path, known: Project | None, *, launched: bool) -> None:
        self.name, self.path, self.project, self.is_launched = name, project, known, launched
        self.settings = known.settings if known else Settings()
        private = private_files.find_private_project(project)
        # A sandbox hides the log's seal in the user's folder, so the log cannot be checked there.
        is_visible = MARKS_VARIABLE not in os.environ and os.access(
            private.agent(name).path, os.R_OK | os.X_OK
        )
        self.reader = StoreReader(
            project,
            private if is_visible else None,
            host=host.identify_host(),
            harnesses=HookReaders(HARNESSES),
            redaction=Redaction(tuple(known.manifest.redact.allow) if known else ()),
        )
        self.lock = RLock()

    @property
    def folder(self) -> AgentFolder:
        return self.reader.folder(self.name)

    def read(self) -> AgentView:
        """Return the agent's state, including its own proposals that are not in the log yet."""
        with self.lock:
            return self.reader.read(self.name)

    def document(self, name: str) -> bytes | None:
        with self.lock:
            return self.reader.document(self.name, name)

    def is_supervised(self) -> bool:
        return self.reader.is_supervised(self.name)

    def submit(self, record: Event) -> None:
        """Append a record to the agent's inbox. It counts at once; a writer folds it later."""
        with self.lock:
            self.folder.verify()
            cleaned = self.reader.redaction.event(record)
            inbox.append_records(self.folder.inbox, [cleaned], durable=True)


def find_served_agent(start: Path) -> ServedAgent:
    """Return the agent of the launch that started this server, or else the folder's agent.

    Raises:
        NotFoundError: There is no agent.
        UntrustedError: The user has not accepted the folder.
    """
    folder = operator_check.find_launched_agent()
    if folder is not None:
        project = folder.parents[2]
        return ServedAgent(folder.name, project, _load_project(project), launched=True)
    known = config.load_project(start)
    trust_checks.require_trust(known.path)
    if known.settings.fleet is not None:
        raise UsageError(
            "these tools do not work on a fleet outside of an agent's own session",
            hint="use the commands, such as `rekindle relay show`",
        )
    name = choose_agent(known, start)
    if name is None:
        raise NotFoundError(
            f"several agents work in {known.path.name}, or none",
            hint="start the CLI in the folder of one agent (`dir:`), or with `rekindle run AGENT`",
        )
    open_store(known).create(name)
    return ServedAgent(name, known.path, known, launched=False)


def _load_project(folder: Path) -> Project | None:
    """Return the project, or None if a sandbox hides its manifest or it is damaged."""
    try:
        project = config.load_project(folder)
    except RekindleError:
        return None
    return project if project.path == folder else None
