"""Find the accounts that agents use, store their quota, and decide when an agent may use it."""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from rekindle.config import Project
from rekindle.documents.agent_ledger import AgentLedger
from rekindle.documents.launches.quota_windows import QuotaReport
from rekindle.documents.launches.route import Route
from rekindle.documents.manifest_quota import QuotaKeys
from rekindle.errors import RekindleError
from rekindle.plugins import ALIASES
from rekindle.policy.quota.ledger_entries import add_spending
from rekindle.policy.quota.pacing import (
    QuotaHold,
    find_last_part_hold,
    find_pace_hold,
    find_reserve_hold,
)
from rekindle.policy.quota.spend_caps import describe_caps, find_cap_hold
from rekindle.policy.routes.list_routes import list_routes
from rekindle.policy.setup.environment import find_reference
from rekindle.policy.supervision.budget import RunSpending
from rekindle.stores.folders.quota_files import AccountFiles, list_ledgers
from rekindle.system import clock
from rekindle.thresholds.quota_limits import LEDGER_DAYS, LEDGER_SECONDS, WORKING_SECONDS
from rekindle.wiring.agent_routes import find_routes, select_account, with_route
from rekindle.wiring.open_store import HARNESSES


class AgentQuota:
    """The quota of one agent's accounts. Only the agent's supervisor writes its ledgers."""

    def __init__(self, find_project: Callable[[], Project], name: str) -> None:
        """Remember how to find the project as last accepted, because its settings may change."""
        self._find_project, self._name = find_project, name
        self._written: dict[str, tuple[AccountFiles, AgentLedger]] = {}
        """The agent's ledgers as last written, by account."""

    @property
    def _project(self) -> Project:
        return self._find_project()

    @property
    def _default(self) -> AgentLedger:
        priority = self._project.manifest.agents[self._name].priority or "normal"
        return AgentLedger(str(self._project.path), self._name, priority)

    def note_quota(self, route: Route, report: QuotaReport) -> bool:
        """Store the quota that a CLI reported. Return whether it has changed."""
        return self.find_account(route).note_windows(report, clock.read_clock())

    def leave(self) -> None:
        """Give up the agent's shares, because its supervisor ends."""
        with suppress(RekindleError):
            for account, ledger in [*self._written.values()]:
                self._write(account, ledger, asked_at=None, is_working=False, waits=False)

    def note_spending(self, route: Route, run: str, spent: RunSpending, is_working: bool) -> None:  # noqa: FBT001 - a port
        """Store what a run has spent so far, and whether the agent works.

        `run` is the name of the run. Nothing is stored without a `quota:` in the manifest.
        """
        if not run or not self._has_quota():
            return
        now, account = clock.read_clock(), self.find_account(route)
        before = self._written.get(account.name, (account, self._default))[1]
        is_recent = before.asked_at and abs(now - before.asked_at) < timedelta(
            seconds=LEDGER_SECONDS
        )
        is_same = (before.run_usd, before.run_tokens) == (spent.usd, spent.tokens)
        is_same_state = (before.run, before.is_working) == (run, is_working)
        if is_recent and is_same_state and (is_working or is_same):
            return
        ledger = self._continue_run(account.read_ledger(self._default), run, spent)
        ledger = add_spending(ledger, run, spent, now)
        self._write(account, ledger, asked_at=now, is_working=is_working, waits=False)

    def _write(self, account: AccountFiles, ledger: AgentLedger, **changes: Any) -> None:
        from rekindle.system.processes import launch_processes  # noqa: PLC0415 - slows down `status`

        if account.name not in self._written:
            account.prune(clock.read_clock() - timedelta(days=LEDGER_DAYS))
        process = launch_processes.identify_self()
        ledger = msgspec.structs.replace(ledger, process=process, **changes)
        self._written[account.name] = (account, ledger)
        account.write_ledger(ledger)

    def _continue_run(self, ledger: AgentLedger, run: str, spent: RunSpending) -> AgentLedger:
        """Return the ledger with the run's last total, over all accounts.

        What the run spent before its first entry does not count, because it may have been long ago.
        """
        same = [
            each
            for each in list_ledgers()
            if (each.project, each.agent, each.run) == (ledger.project, ledger.agent, run)
        ]
        usd = max((each.run_usd for each in same), default=spent.usd)
        tokens = max((each.run_tokens for each in same), default=spent.tokens)
        return msgspec.structs.replace(ledger, run=run, run_usd=usd, run_tokens=tokens)

    def find_hold(self, route: Route) -> QuotaHold | None:
        """Return why no launch of the agent may start on a route, and until when, or None."""
        stop, reserve = self.find_stop(route), self._find_reserve(route)
        if stop is not None or reserve is None:
            return stop
        account, now = self.find_account(route), clock.read_clock()
        own, others = self._read_ledgers(account)
        return find_pace_hold(account.read_windows().windows, reserve, own, others, now)

    def note_hold(self, route: Route, hold: QuotaHold | None) -> None:
        """Store whether the agent waits for its share of a route's account."""
        waits = hold is not None and hold.is_turn
        account = self.find_account(route)
        own = account.read_ledger(self._default) if self._has_quota() else self._default
        if waits or own.waits:
            now = clock.read_clock()
            self._write(account, own, asked_at=now, is_working=False, waits=waits)

    def find_stop(self, route: Route) -> QuotaHold | None:
        """Return why an agent must stop between two turns, or None."""
        now, account = clock.read_clock(), self.find_account(route)
        keys, project = self._find_account_keys(route), self._project.manifest.quota or QuotaKeys()
        holds: list[QuotaHold | None] = []
        reserve = self._find_reserve(route)
        if reserve is not None:
            windows, (own, others) = account.read_windows().windows, self._read_ledgers(account)
            holds.append(find_reserve_hold(windows, reserve, others, now))
            holds.append(find_last_part_hold(windows, reserve, own, others, now))
        if keys.has_caps or project.has_caps:
            local = now.astimezone(clock.find_zone())
            mine = [each for each in list_ledgers() if each.project == self._default.project]
            holds.append(find_cap_hold(project, mine, local, "cap of the project"))
            ledgers = account.read_ledgers()
            holds.append(find_cap_hold(keys, ledgers, local, "cap of the account"))
        return max((hold for hold in holds if hold), key=lambda each: each.until, default=None)

    def _read_ledgers(self, account: AccountFiles) -> tuple[AgentLedger, list[AgentLedger]]:
        """Return the agent's own ledger for an account, and those of all other agents."""
        own = account.read_ledger(self._default)
        name = (own.project, own.agent)
        others = [each for each in account.read_ledgers() if (each.project, each.agent) != name]
        return own, [_drop_lost_share(each) for each in others]

    def find_account(self, route: Route) -> AccountFiles:
        """Return the files of a route's account."""
        return AccountFiles(route.harness, find_config_folder(self._project, self._name, route))

    def _has_quota(self) -> bool:
        """Return whether anything has a quota. If so, each route's spending must be known."""
        manifest = self._project.manifest
        return bool(manifest.quota or any(each.quota for each in manifest.accounts.values()))

    def _find_reserve(self, route: Route) -> float | None:
        own = self._find_account_keys(route).reserve_percent
        project = self._project.manifest.quota or QuotaKeys()
        return own if own is not None else project.reserve_percent

    def _find_account_keys(self, route: Route) -> QuotaKeys:
        account = self._project.manifest.accounts.get(route.account)
        return (account.quota if account else None) or QuotaKeys()


def _drop_lost_share(ledger: AgentLedger) -> AgentLedger:
    """Return a ledger without its share if the supervisor was killed and not restarted soon."""
    from rekindle.system.processes import launch_processes  # noqa: PLC0415 - slows down `status`

    recent = clock.read_clock() - timedelta(seconds=WORKING_SECONDS)
    if not ledger.asked_at or ledger.asked_at >= recent:
        return ledger
    is_alive = launch_processes.is_alive(ledger.process)
    return ledger if is_alive else msgspec.structs.replace(ledger, asked_at=None)


def list_accounts(project: Project, names: Sequence[str]) -> dict[str, tuple[Route, AccountFiles]]:
    """Return the accounts of some agents, without duplicates. Plain programs have none."""
    accounts: dict[str, tuple[Route, AccountFiles]] = {}
    for name in names:
        for route in find_routes(project, name):
            harness = HARNESSES.get(route.harness)
            if harness is not None and harness.HOOK_FILES is not None:
                account = AgentQuota(lambda: project, name).find_account(route)
                accounts.setdefault(account.name, (route, account))
    return accounts


def describe_project_caps(project: Project) -> list[str]:
    """Return how much of each cap the agents of a project have spent together."""
    ledgers = [each for each in list_ledgers() if each.project == str(project.path)]
    local = clock.read_clock().astimezone(clock.find_zone())
    return describe_caps(project.manifest.quota or QuotaKeys(), ledgers, local)


def describe_account_caps(project: Project, route: Route, account: AccountFiles) -> list[str]:
    """Return how much of each cap of an account agents have spent together."""
    entry = project.manifest.accounts.get(route.account)
    local = clock.read_clock().astimezone(clock.find_zone())
    keys = (entry.quota if entry else None) or QuotaKeys()
    return describe_caps(keys, account.read_ledgers(), local)


def find_config_folder(project: Project, name: str, route: Route) -> str:
    """Return the configuration folder of a route's CLI, with links resolved.

    It depends on the variables that the CLI itself uses, such as CLAUDE_CONFIG_DIR.
    """
    plans = list_routes(project.manifest, name, ALIASES, switches=True)
    is_own = any(plan.route == route for plan in plans)
    # A reviewer may use a CLI that is not one of the agent's routes.
    routed = with_route(project, name, route) if is_own else project
    harness = HARNESSES.get(route.harness)
    if harness is None or harness.HOOK_FILES is None:
        return ""
    own = project.manifest.agents[name].env or {}
    variables = {key: os.environ.get(find_reference(value), value) for key, value in own.items()}
    environment = select_account(routed, name, harness, {**os.environ, **variables})
    return os.path.realpath(harness.HOOK_FILES.find_own_folder(environment, str(Path.home())))
