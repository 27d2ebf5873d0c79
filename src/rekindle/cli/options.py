"""Options that many commands share, and functions that find their agents and stores."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
from click.core import ParameterSource

from rekindle import config
from rekindle.api.agent_store import AgentStore, open_fleet_store
from rekindle.cli.fleet_refusal import refuse_fleet
from rekindle.cli.output import echo
from rekindle.config import Project
from rekindle.errors import AuditError, RekindleError, UsageError
from rekindle.policy.settings.runtime_settings import FleetSettings
from rekindle.stores.files import FileStore
from rekindle.thresholds.screens import AGENTS_NAMED, LARGEST_LAST, SHOWN_LAST
from rekindle.wiring.agent_dir_list import (
    choose_agent,
    find_agent_dir,
)
from rekindle.wiring.open_store import open_store

if TYPE_CHECKING:
    from rekindle.api.agent import Agent
    from rekindle.api.home import Home
    from rekindle.fleet.commands.fleet_store import FleetStore

F = TypeVar("F", bound=Callable[..., Any])


class Number(click.IntRange):
    """Integer option with a range. Help and error messages describe the range in words."""

    name = "number"

    def _describe_range(self) -> str:
        is_bounded = self.max is not None and self.max < LARGEST_LAST
        return f"{self.min} to {self.max}" if is_bounded else f"{self.min} or more"


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
take_over_option = click.option(
    "--take-over", is_flag=True, help="Take over the agent from its previous host."
)


last_option = click.option(
    "-n",
    "--last",
    type=Number(0, LARGEST_LAST),
    default=SHOWN_LAST,
    show_default=True,
    help="Number of entries to show, or 0 for all.",
)


def agent_option(command: F) -> F:
    """Add the --agent option."""
    return click.option(
        "-a",
        "--agent",
        metavar="AGENT",
        envvar="REKINDLE_AGENT",
        help="Agent to use. Default: the only agent, or the agent that works in this folder.",
    )(command)


def add_agent_argument(command: F) -> F:
    """Add an optional AGENT argument to a command. It overrides REKINDLE_AGENT."""

    @click.argument("named", required=False, metavar="[AGENT]")
    @agent_option
    @wraps(command)
    def call_with_agent(*arguments: Any, named: str | None, agent: str | None, **more: Any) -> Any:
        return command(*arguments, agent=choose_named(named, agent), **more)

    return cast(F, call_with_agent)


def choose_named(named: str | None, agent: str | None) -> str | None:
    """Return the agent named by AGENT or --agent. Refuse two different names."""
    if named and agent and agent != named and is_typed("agent"):
        raise UsageError(
            "AGENT and --agent name different agents", hint=f"name one of them: {named} or {agent}"
        )
    return named or agent


def is_typed(option: str) -> bool:
    """Return whether an option was given on the command line rather than in the environment."""
    source = click.get_current_context().get_parameter_source(option)
    return source is ParameterSource.COMMANDLINE


def find_current_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError as gone:
        raise UsageError(
            "the current folder no longer exists",
            hint="cd to a folder that exists, then repeat the command",
        ) from gone


def open_project(option: str = "") -> tuple[Project, FileStore]:
    """Return the project and its files. Refuse the command, or its `option`, on a fleet."""
    project = config.load_project(find_current_folder())
    refuse_fleet(project, option)
    return project, open_store(project, say=print_note)


def open_files(agent: str | None, option: str = "") -> tuple[Project, FileStore, str]:
    """Return the project, its files on this host and the agent. Refuse the command on a fleet."""
    project, store = open_project(option)
    return project, store, resolve_agent(project, agent)


def require_operator(project: Project) -> None:
    """Refuse the command if a project agent runs it, unless the manifest allows that."""
    from rekindle.wiring.access.operator_check import refuse_agent  # noqa: PLC0415 - keeps reading commands fast

    refuse_agent(project, click.get_current_context().command_path)


def open_agent(agent: str | None, *, operator: bool = False) -> tuple[Project, AgentStore, str]:
    """Return the project, its store and the agent.

    With `operator`, refuse the command if an agent runs it.
    """
    project = config.load_project(find_current_folder())
    if operator:
        require_operator(project)
    name = resolve_agent(project, agent)
    return project, open_store_of(project), name


def open_home(*, trust: bool = False) -> "Home":
    """Return the project as the API sees it. It is closed when the command exits."""
    from rekindle.api.home import Home  # noqa: PLC0415 - keeps the start of other commands fast
    from rekindle.cli.trust_prompt import make_operator  # noqa: PLC0415 - keeps the start of other commands fast

    home = Home(find_current_folder(), make_operator(trust=trust))
    click.get_current_context().call_on_close(home.close)
    return home


def open_handle(agent: str | None) -> "Agent":
    """Return the API's handle for an agent."""
    home = open_home()
    return home.agent(resolve_agent(home.project, agent))


def open_agents(
    agents: Sequence[str], *, by_folder: bool = False, with_workers: bool = False
) -> tuple[Project, AgentStore, list[str]]:
    """Return the project, its store and the named agents, or all agents.

    With `by_folder`, return only the agent that works in the current folder, if any. With
    `with_workers`, all agents include the running workers of pipeline runs on this host.
    """
    project = config.load_project(find_current_folder())
    names = [project.require_agent(name) for name in dict.fromkeys(agents)]
    others = list_agents_here(project) if by_folder else project.declared_agents
    if with_workers and project.workers and others == project.declared_agents:
        from rekindle.wiring.pipelines.read_runs import list_running_workers  # noqa: PLC0415 - rarely needed

        others = [*others, *list_running_workers(project)]
    return project, open_store_of(project), names or others


def list_agents_here(project: Project) -> list[str]:
    """Return the agent that works in the current folder, or all agents in the project folder."""
    agent = choose_agent(project, find_current_folder())
    is_own = agent is not None and find_agent_dir(project, agent) != project.path.resolve()
    return [agent] if agent and is_own else project.declared_agents


def open_store_of(project: Project) -> AgentStore:
    """Return a project's store: the files on this host, or the fleet."""
    if project.settings.fleet is None:
        return open_store(project, say=print_note)
    return open_fleet(project, project.settings.fleet)


def find_fleet() -> tuple[Project, FleetSettings]:
    """Return the project of the current folder and the fleet that its manifest names."""
    project = config.load_project(find_current_folder())
    if project.settings.fleet is None:
        raise UsageError(
            "rekindle.yaml does not name a fleet",
            hint="add `fleet: {address: HOST:PORT}`; `rekindle fleet dev` starts an engine here",
        )
    return project, project.settings.fleet


def open_fleet(project: Project, fleet: FleetSettings) -> "FleetStore":
    """Return the fleet's store. Its connection is closed when the command exits."""
    from rekindle.cli.trust_prompt import ensure_trust  # noqa: PLC0415 - keeps the start of other commands fast

    ensure_trust(project, trust=False)
    store = open_fleet_store(project, fleet, _print_warning)
    click.get_current_context().call_on_close(store.close)
    return store


def resolve_agent(project: Project, agent: str | None) -> str:
    """Return the named agent, or by default the only agent or the current folder's agent."""
    if agent is not None:
        return project.require_agent(agent)
    if chosen := choose_agent(project, find_current_folder()):
        return chosen
    names = project.declared_agents
    if not names:
        raise UsageError("there is no agent yet", hint="add one with `rekindle init AGENT`")
    listed = ", ".join(names[:AGENTS_NAMED])
    more = ", …" if len(names) > AGENTS_NAMED else ""
    context = click.get_current_context()
    is_option = any("--agent" in parameter.opts for parameter in context.command.params)
    raise UsageError(
        f"which agent? rekindle.yaml has {len(names)}: {listed}{more}",
        hint=f"add the name of one: `--agent {names[0]}`"
        if is_option
        else f"name one: `{context.command_path} {names[0]}`",
    )


budget_option = click.option(
    "--budget",
    type=click.Choice(["none"]),
    help="none: do not pause the run, however many launches, hours or dollars it uses without "
    "progress.",
)
"""Option that disables the limits on work without progress."""


def adopt_edits(store: FileStore, name: str) -> None:
    """Adopt manual edits before a command reads the files. Errors are ignored.

    While a supervisor is running, it adopts edits itself, because the agent may have made them.
    """
    with suppress(RekindleError):
        if not store.is_supervised(name):
            store.adopt_edits(name)


def print_note(error: AuditError) -> None:
    """Print an audit trail error that does not make the command fail."""
    echo(f"Note: {error} (→ {error.hint})", err=True)


def _print_warning(words: str) -> None:
    echo(f"Note: {words}", err=True)


def render_age_of(then: datetime | None, now: datetime) -> str:
    """Return how long ago a time was, in its largest unit, such as "3 hours ago", or "never"."""
    if then is None:
        return "never"
    seconds = (now - then).total_seconds()
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s")):
        if seconds >= size:
            return f"{seconds // size:.0f} {unit} ago"
    return "just now"
