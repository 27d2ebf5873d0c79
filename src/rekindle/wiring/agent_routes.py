"""Find an agent's routes and accounts in the manifest."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from rekindle.config import Project
from rekindle.documents.launches.route import Route
from rekindle.documents.manifest import AgentEntry
from rekindle.documents.manifest_routes import AccountEntry
from rekindle.errors import AgentError, ManifestError, translate_os_errors
from rekindle.formats.identifiers import to_one_line
from rekindle.formats.yaml_lines import KeyPath, MarkedData
from rekindle.plugins import ALIASES
from rekindle.policy.routes.list_routes import list_accounts, list_routes
from rekindle.policy.setup import environment
from rekindle.ports import Harness
from rekindle.wiring.agent_dir_list import find_agent_dir
from rekindle.wiring.open_store import HARNESSES, find_harness


def find_routes(project: Project, name: str) -> tuple[Route, ...]:
    """Return the routes on which an agent's work can run, in order of preference.

    A person works with an agent in a terminal, so it stays on its first route. So does a worker of
    a pipeline.
    """
    stays = project.manifest.agents[name].mode == "stay" or name in project.workers
    switches = project.settings.runtime.accounts.switch
    plans = list_routes(project.manifest, name, ALIASES, switches=switches)
    return tuple(plan.route for plan in plans[: 1 if stays else None])


def with_route(project: Project, name: str, route: Route) -> Project:
    """Return the project with an agent that has only this route.

    Accounts of other CLIs stay, for a summarizer or a reviewer with its own `adapter:`.
    """
    entry = project.manifest.agents[name]
    plans = list_routes(project.manifest, name, ALIASES, switches=True)
    plan = next(plan.entry for plan in plans if plan.route == route)
    routed = msgspec.structs.replace(
        entry,
        harness=plan.use,
        persona=plan.persona,
        command=plan.command,
        accounts=_keep_accounts(project, entry, route),
        harnesses=None,
    )
    agents = {**project.manifest.agents, name: routed}
    manifest = msgspec.structs.replace(project.manifest, agents=agents)
    number = (entry.harnesses or [plan]).index(plan)
    return msgspec.structs.replace(
        project, manifest=manifest, marked=_move_lines(project.marked, name, number)
    )


def _move_lines(marked: MarkedData, name: str, number: int) -> MarkedData:
    """Return the manifest's lines with those of an item of the `harness:` list for the agent."""
    own: KeyPath = ("agents", name)
    item = (*own, "harnesses", number)
    places = {"harness": item, "persona": (*item, "persona")}
    lines = {
        (*own, key): marked.lines[place] for key, place in places.items() if place in marked.lines
    }
    return msgspec.structs.replace(marked, lines={**marked.lines, **lines})


def _keep_accounts(project: Project, entry: AgentEntry, route: Route) -> list[str] | None:
    kept = {route.account}
    for harness in _list_adapters(project) - {route.harness}:
        kept |= {*list_accounts(project.manifest, entry, harness, ALIASES)}
    return [account for account in entry.accounts or () if account in kept] or None


def _list_adapters(project: Project) -> set[str]:
    """Return the CLIs that personas name, for example for summaries and reviews."""
    named = {persona.adapter for persona in project.manifest.personas.values() if persona.adapter}
    return {ALIASES.get(harness, harness) for harness in named}


def select_account(
    project: Project, name: str, harness: Harness, variables: Mapping[str, str]
) -> dict[str, str]:
    """Return the variables for a program of the agent's account, without keys of other accounts.

    Without an account for the harness, the variables stay the same.
    """
    account = find_account(project, name, harness)
    if account is None or not harness.ACCOUNT_VARIABLE:
        return dict(variables)
    folder = str(find_account_folder(account))
    kept = environment.drop_login_variables(variables, harness.LOGIN_SWITCHES)
    return {**kept, harness.ACCOUNT_VARIABLE: folder}


def select_route_variables(project: Project, name: str, ours: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that the program of any of the agent's routes gets."""
    chosen = environment.select_variables(ours, (), ())
    for harness in list_route_harnesses(project, name).values():
        chosen |= environment.select_variables(
            ours, harness.PASSED_PREFIXES, harness.BLOCKED_VARIABLES
        )
    return chosen


def find_account_folder(account: AccountEntry) -> Path:
    return Path(account.config_dir).expanduser()


def find_config_folders(
    project: Project, name: str, harness: Harness, ours: Mapping[str, str]
) -> dict[str, str]:
    """Return the CLI's own folder for each of the agent's accounts, by the account's name.

    `ours` is the operator's environment.
    """
    if harness.HOOK_FILES is None:
        return {}
    home = ours.get("HOME") or str(Path.home())
    folders = {}
    for route in find_routes(project, name):
        if route.harness == harness.NAME:
            routed = with_route(project, name, route)
            variables = select_account(routed, name, harness, ours)
            folders[route.account] = harness.HOOK_FILES.find_own_folder(variables, home)
    return folders


def check_harness_list(project: Project, name: str, _: tuple[str, ...] = ()) -> None:
    """Refuse a `harness:` list that names a CLI twice, because each CLI has one persona.

    Raises:
        ManifestError: Two items name the same CLI.
    """
    names: set[str] = set()
    for number, item in enumerate(project.manifest.agents[name].harnesses or ()):
        harness = ALIASES.get(item.use, item.use)
        if harness in names:
            raise ManifestError(
                f"agent {name}: `harness:` lists {harness} twice",
                line=project.marked.line(("agents", name, "harnesses", number)),
                hint="remove one of the two; several accounts of a CLI are listed in `accounts:`",
            )
        names.add(harness)


def check_accounts(project: Project, name: str, _: tuple[str, ...] = ()) -> None:
    """Refuse accounts that the agent cannot use.

    Raises:
        ManifestError: `accounts:` names an account that does not exist or that none of the agent's
            CLIs can use, or two accounts with the same login.
    """
    accounts = project.manifest.agents[name].accounts or []
    for number, account in enumerate(accounts):
        problem, hint = _find_problem(project, name, account) or ("", "")
        if not problem and name not in project.workers:
            problem, hint = _find_same_login(project, account, accounts[:number]) or ("", "")
        if problem:
            line = project.marked.line(("agents", name, "accounts"))
            raise ManifestError(f"agent {name}: {problem}", line=line, hint=hint)


def _find_problem(project: Project, name: str, account: str) -> tuple[str, str] | None:
    """Return why the agent cannot use an account, and a hint, or None."""
    known = project.manifest.accounts
    if account not in known:
        problem = f"there is no account named {to_one_line(account)!r}"
        others = f"use one of: {', '.join(known)}" if known else ""
        return problem, others or "add it to `accounts:` in rekindle.yaml"
    used = {route.harness for route in find_routes(project, name)} | _list_adapters(project)
    harness = known[account].harness
    if ALIASES.get(harness, harness) in used or name in project.workers:
        return None  # a worker has the accounts of all agents, which may use other CLIs
    problem = f"account {account} belongs to {harness}, which it does not use"
    return problem, f"add {harness} to `harness:`, or remove the account"


def _find_same_login(
    project: Project, account: str, others: Sequence[str]
) -> tuple[str, str] | None:
    """Return the problem and a hint if another account of the CLI has the same folder, or None."""
    if account in others:
        return f"account {account} is listed twice", "remove one of the two"
    known = project.manifest.accounts
    for other in others:
        if _find_login(known[other]) == _find_login(known[account]):
            problem = f"accounts {other} and {account} have the same folder, and so the same login"
            return problem, f"correct the `config_dir:` of {account}, or remove the account"
    return None


def _find_login(account: AccountEntry) -> tuple[str, str]:
    harness = ALIASES.get(account.harness, account.harness)
    return harness, os.path.realpath(find_account_folder(account))


def check_account_folder(project: Project, name: str, _: tuple[str, ...] = ()) -> None:
    """Refuse an account's folder that is missing, or that the agent could change.

    Raises:
        ManifestError: The folder is in the project or in the agent's folder, or contains one.
        AgentError: The folder does not exist.
    """
    own = find_harness(project, name)
    for named in sorted(_list_adapters(project) | {own.NAME}):
        if harness := HARNESSES.get(named):
            _check_folder_of(project, name, harness)


def _check_folder_of(project: Project, name: str, harness: Harness) -> None:
    account = find_account(project, name, harness)
    if account is None:
        return
    entry = project.manifest.agents[name]
    called = list_accounts(project.manifest, entry, harness.NAME, ALIASES)[0]
    folder = find_account_folder(account)
    line = project.marked.line(("accounts", called, "config_dir"))
    if not harness.ACCOUNT_VARIABLE:
        raise ManifestError(
            f"account {called}: {harness.NAME} has no accounts",
            line=project.marked.line(("accounts", called, "harness")),
            hint="remove the account; the CLI uses its own configuration",
        )
    own = _find_own_folder(harness, folder)
    with translate_os_errors(folder):
        places = [place.resolve() for place in (project.path, find_agent_dir(project, name))]
        inside = any(folder.resolve().is_relative_to(place) for place in places)
        outside = any(place.is_relative_to(own.resolve()) for place in places)
        is_there = folder.is_dir()
    if inside or outside:
        raise ManifestError(
            f"account {called}: its folder must be outside the project and not contain it, because "
            "an agent must not change its own login",
            line=line,
            hint="write a folder in your home, such as `config_dir: ~/claude-work`",
        )
    if not is_there:
        program = harness.HOOK_FILES.program if harness.HOOK_FILES else harness.NAME
        raise AgentError(
            f"account {called}: the folder {to_one_line(account.config_dir)} does not exist",
            hint=f"create it and log in there: `{harness.ACCOUNT_VARIABLE}={account.config_dir} "
            f"{program}`",
        )


def _find_own_folder(harness: Harness, folder: Path) -> Path:
    """Return the CLI's own folder for an account, which Gemini CLI creates inside the account's."""
    if harness.HOOK_FILES is None:
        return folder
    variables = {harness.ACCOUNT_VARIABLE: str(folder)}
    return Path(harness.HOOK_FILES.find_own_folder(variables, str(folder)))


def find_account(project: Project, name: str, harness: Harness) -> AccountEntry | None:
    """Return the agent's first account of a CLI, or None if it lists none."""
    entry = project.manifest.agents[name]
    accounts = list_accounts(project.manifest, entry, harness.NAME, ALIASES)
    return project.manifest.accounts[accounts[0]] if accounts else None


def list_route_harnesses(project: Project, name: str) -> dict[str, Harness]:
    """Return the harnesses of the agent's routes, by name."""
    names = dict.fromkeys(route.harness for route in find_routes(project, name))
    return {named: HARNESSES[named] for named in names if named in HARNESSES}
