"""Show the quota of the agents' accounts in `rekindle status`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from rekindle.cli.output import LineParts
from rekindle.config import Project
from rekindle.errors import RekindleError
from rekindle.system import clock


class UsedAccounts:
    """The accounts that some agents use. On a fleet, they are not known here."""

    def __init__(self, project: Project, names: Sequence[str]) -> None:
        self._project, self._names = project, names

    def render(self) -> list[LineParts]:
        """Return a line for each account: how full its windows are, and its caps."""
        accounts = self._list()
        if not accounts:
            return []
        from rekindle.documents.screens.quota_lines import render_quota  # noqa: PLC0415 - as below
        from rekindle.wiring.agent_quota import (  # noqa: PLC0415 - as below
            describe_account_caps,
            describe_project_caps,
        )

        now, zone = clock.read_clock(), clock.find_zone()
        lines: list[LineParts] = []
        for route, account in accounts:
            label = "  quota: " if len(self._names) == len(accounts) == 1 else f"quota of {route}:"
            quota = account.read_windows()
            if quota.windows or len(self._names) == 1:
                lines.append((f"{label} {render_quota(quota, now, zone)}",))
            if caps := describe_account_caps(self._project, route, account):
                lines.append((f"caps of {route}: {'; '.join(caps)}",))
        if accounts and self._project.manifest.quota:
            caps = describe_project_caps(self._project)
            lines += [(f"caps of the project: {'; '.join(caps)}",)] if caps else []
        return lines

    def read_json(self) -> list[dict[str, Any]]:
        """Return the accounts as JSON data. `windows` is null if no window is known."""
        return [_make_json(route, account.read_windows()) for route, account in self._list()]

    def _list(self) -> list[tuple[Any, Any]]:
        if self._project.settings.fleet is not None:
            return []
        from rekindle.wiring.agent_quota import list_accounts  # noqa: PLC0415 - only for this screen

        try:
            return [*list_accounts(self._project, self._names).values()]
        except RekindleError:
            return []  # the agent's own row shows the error


def _make_json(route: Any, quota: Any) -> dict[str, Any]:
    now = clock.read_clock()
    windows = [
        msgspec.to_builtins(window, builtin_types=(datetime,))
        for window in quota.windows
        if window.is_valid(now)
    ]
    return {
        "harness": route.harness,
        "account": route.account,
        "folder": quota.folder,
        "seen_at": quota.seen_at,
        "windows": windows or None,
    }
