"""A row of `rekindle status`."""

from datetime import datetime
from typing import Any

import msgspec

from rekindle.documents.screens.agent_row import AgentRow


class StatusRow(msgspec.Struct, frozen=True):
    """An agent as `rekindle status` shows it."""

    row: AgentRow
    details: dict[str, Any] = {}
    """Details that only `rekindle status` shows. Empty if the agent's files could not be read."""

    def as_json(self) -> dict[str, Any]:
        row: dict[str, Any] = msgspec.to_builtins(self.row, builtin_types=(datetime,))
        return row | self.details
