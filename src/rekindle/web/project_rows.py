"""Read the agents of all projects of the user, and read again only what has changed."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from rekindle.api.home import Home
from rekindle.api.trusted_homes import TrustedHomes
from rekindle.documents.screens.agent_row import AgentRow
from rekindle.errors import RekindleError
from rekindle.policy.operator.build_row import build_broken_row
from rekindle.policy.redact.redaction import Redaction
from rekindle.thresholds.web_limits import (
    UI_BATCH_AGENTS,
    UI_BATCH_SECONDS,
)
from rekindle.web.web_row import encode_row


class WebProjects(TrustedHomes):
    """The rows of all agents in the current project and in all other trusted projects."""

    def __init__(self, start: Path | None) -> None:
        """Create the list. `start` is the current project's folder, if there is one."""
        super().__init__(start)
        self._encoded: dict[str, tuple[AgentRow, bytes]] = {}

    def read(self) -> Iterator[Mapping[str, bytes]]:
        """Yield the rows of all agents in batches, each row as JSON by its key."""
        batch: dict[str, bytes] = {}
        began = time.monotonic()
        for name in self.list_names():
            for key, row in self._read_project(name):
                batch[key] = row
                if time.monotonic() - began > UI_BATCH_SECONDS:
                    yield batch
                    batch, began = {}, time.monotonic()
        yield batch

    def _read_project(self, name: str) -> Iterator[tuple[str, bytes]]:
        try:
            home = self.find(name)
            redaction, agents = find_redaction(home), home.agents()
            for start in range(0, len(agents), UI_BATCH_AGENTS):
                for row in home.rows(agents[start : start + UI_BATCH_AGENTS]):
                    yield f"{name}/{row.agent}", self._encode(name, row, redaction)
        except RekindleError as error:
            row = build_broken_row("-", "", str(error), error.hint)
            yield f"{name}/-", self._encode(name, row, Redaction())

    def _encode(self, name: str, row: AgentRow, redaction: Redaction) -> bytes:
        key = f"{name}/{row.agent}"
        before, encoded = self._encoded.get(key, (None, b""))
        if before is not row:
            encoded = encode_row(name, row, redaction)
            self._encoded[key] = row, encoded
        return encoded


def find_redaction(home: Home) -> Redaction:
    """Return the rules by which a project's texts are redacted."""
    return Redaction(tuple(home.project.manifest.redact.allow))
