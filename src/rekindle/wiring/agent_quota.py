"""Find the accounts that agents use, and store their quota."""

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from rekindle.config import Project
from rekindle.documents.launches.quota_windows import QuotaWindow
from rekindle.documents.launches.route import Route
from rekindle.stores.folders.quota_files import AccountFiles
from rekindle.system import clock
from rekindle.wiring.agent_routes import find_routes, select_account, with_route
from rekindle.wiring.open_store import HARNESSES, find_harness


class AgentQuota:
    """The quota of one agent's accounts."""

    def __init__(self, project: Project, name: str) -> None:
        self._project, self._name = project, name

    def note_quota(self, route: Route, windows: Sequence[QuotaWindow]) -> bool:
        """Store the quota that a CLI reported. Return whether it has changed."""
        return self.find_account(route).note_windows(windows, self._read_clock())

    def find_account(self, route: Route) -> AccountFiles:
        """Return the files of a route's account."""
        return AccountFiles(route.harness, find_config_folder(self._project, self._name, route))

    @staticmethod
    def _read_clock() -> datetime:
        return clock.read_clock()


def list_accounts(project: Project, names: Sequence[str]) -> dict[str, tuple[Route, AccountFiles]]:
    """Return the accounts of some agents, without duplicates. Plain programs have none."""
    accounts: dict[str, tuple[Route, AccountFiles]] = {}
    for name in names:
        for route in find_routes(project, name):
            harness = HARNESSES.get(route.harness)
            if harness is not None and harness.HOOK_FILES is not None:
                account = AgentQuota(project, name).find_account(route)
                accounts.setdefault(account.name, (route, account))
    return accounts


def find_config_folder(project: Project, name: str, route: Route) -> str:
    """Return the configuration folder of a route's CLI, with links resolved.

    It depends on the variables that the CLI itself uses, such as CLAUDE_CONFIG_DIR.
    """
    routed = with_route(project, name, route)
    harness = find_harness(routed, name)
    if harness.HOOK_FILES is None:
        return ""
    own = project.manifest.agents[name].env or {}
    variables = {key: os.path.expandvars(value) for key, value in own.items()}
    environment = select_account(routed, name, harness, {**os.environ, **variables})
    return os.path.realpath(harness.HOOK_FILES.find_own_folder(environment, str(Path.home())))
