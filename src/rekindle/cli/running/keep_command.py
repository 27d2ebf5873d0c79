"""`rekindle keep`: continue a session that a person started, and keep it alive."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from rekindle import config
from rekindle.cli.fleet_refusal import refuse_fleet
from rekindle.cli.options import Number, choose_named, find_current_folder, print_note
from rekindle.cli.output import echo
from rekindle.cli.running.run_command import run
from rekindle.cli.running.up_command import up
from rekindle.cli.setup.init_command import add_agent, render_may
from rekindle.cli.setup.initial_files import write_prompt, write_schema, write_summarizer
from rekindle.cli.trust_prompt import ensure_trust, print_changes, trust_option
from rekindle.documents.manifest import MANIFEST_FILE
from rekindle.errors import NotFoundError, OwnershipError, SupervisedError, UsageError
from rekindle.formats.counts import render_count
from rekindle.formats.identifiers import make_agent_name, require_agent_name, to_one_line
from rekindle.policy.keeping.session_state import SessionState
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.settings.runtime_settings import AgentDefaults
from rekindle.policy.setup.permissions import (
    DEFAULT_LEVEL,
    PERMISSION_LEVELS,
    PermissionLevel,
    explain_level,
    list_narrower,
)
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.system.processes import cli_processes
from rekindle.thresholds.keep_limits import KEEP_TASK_CHARACTERS, SESSIONS_LISTED
from rekindle.wiring.access.operator_check import refuse_agent_of
from rekindle.wiring.access.trust_checks import accept_project, accept_settings, is_trusted
from rekindle.wiring.keeping import close_session, find_sessions
from rekindle.wiring.keeping.find_sessions import FoundSession, read_session_state
from rekindle.wiring.keeping.record_session import record_session
from rekindle.wiring.open_store import find_harness, open_store


@click.command()
@click.argument("session", required=False)
@click.argument("named", required=False, metavar="[AGENT]")
@click.option(
    "-a", "--agent", metavar="NAME", help="Name of the agent, as an alternative to AGENT."
)
@click.option(
    "--tools",
    type=click.Choice(list(PERMISSION_LEVELS)),
    help="What a new agent may do, as with `rekindle init`.",
)
@click.option("--wait", is_flag=True, help="Do not close the session; wait until you close it.")
@click.option("--now", is_flag=True, help="Close the session at once, even during a tool call.")
@click.option("--cycles", type=Number(0), help="Number of cycles in this run, or 0 for no limit.")
@click.option("--background", is_flag=True, help="Continue in the background, like `rekindle up`.")
@click.option("--yes", is_flag=True, help="Continue the session without asking.")
@trust_option
@click.pass_context
def keep(
    context: click.Context,
    *,
    session: str | None,
    named: str | None,
    agent: str | None,
    tools: PermissionLevel | None,
    wait: bool,
    now: bool,
    cycles: int | None,
    background: bool,
    yes: bool,
    trust: bool,
) -> object:
    """Continue a session that you started by hand, and keep it alive from here on.

    Start this in the folder of the session, in another terminal. SESSION is the id of a session of
    Claude Code, Codex or Gemini CLI; you can omit it if only one session is running there. Rekindle
    waits until the session's turn is over, asks the program to exit, and resumes the same session
    under supervision. AGENT gets the session; if there is no such agent yet, Rekindle sets it up.
    """
    for one, other, is_given in (
        ("--wait", "--now", wait and now),
        ("--cycles", "--background", cycles is not None and background),
    ):
        if is_given:
            raise UsageError(f"{one} and {other} exclude each other", hint="leave out one of them")
    place = find_current_folder()
    folder = config.find_project(place) or place
    refuse_agent_of(folder, config.list_agents(folder), "rekindle keep")
    sessions, owners = _search(place, folder)
    found = _choose_session(place, sessions, owners, session)
    owner = owners.get(found.session)
    name = _choose_agent(folder, place, found, choose_named(named, agent) or owner)
    if owner not in {None, name}:
        raise OwnershipError(
            f"the session {found.session} belongs to the agent {owner}",
            hint=f"continue it with that agent: `rekindle keep {found.session} {owner}`",
        )
    state = read_session_state(found)

    def refresh() -> FoundSession:
        now = {one.session: one for one in _search(place, folder)[0]}
        return now.get(found.session) or msgspec.structs.replace(found, processes=None)

    _refuse_caller(found)
    _describe(found, state, name, _explain_permissions(folder, name, found.harness, tools))
    if not yes:
        _confirm(found, wait=wait, now=now)
    if wait and found.is_running:
        echo("· waiting until you close the session (Ctrl-C stops waiting and changes nothing)")
        close_session.wait_for_exit(refresh)
    for line in _set_up(folder, name, found, state, tools=tools, trust=trust):
        echo(f"✓ {line}")
    if wait:
        close_session.release_server(refresh())
    else:
        _close(found, refresh, now=now)
    store = open_store(config.load_project(folder), say=print_note)
    record_session(
        store,
        name,
        session=found.session,
        harness=found.harness,
        transcript=found.transcript,
        origin="person",
    )
    echo(f"✓ {name} continues the session {found.session}")
    if background:
        return context.invoke(up, agents=(name,), tmux=False, budget=None, trust=trust)
    return context.invoke(run, agent=name, cycles=cycles, trust=trust)


def _search(place: Path, folder: Path) -> tuple[list[FoundSession], dict[str, str]]:
    """Return all sessions, and the agents of those that Rekindle launched or kept before."""
    names = RekindleFolder(folder).names()
    if not names or config.find_project(folder) is None:
        return find_sessions.find_sessions(place), {}
    store = open_store(config.load_project(folder))
    reported, owners = find_sessions.read_known_sessions(store, names)
    return find_sessions.find_sessions(place, reported), owners


def _choose_session(
    place: Path, sessions: list[FoundSession], owners: dict[str, str], session: str | None
) -> FoundSession:
    """Return the named session, or the only one that is running.

    A session that has an agent and has ended counts only if it is named, because `rekindle run`
    continues it.

    Raises:
        NotFoundError: There is no such session.
        UsageError: There are several.
    """
    if session is None:
        sessions = [one for one in sessions if one.is_running or one.session not in owners]
    else:
        sessions = [found for found in sessions if found.session.startswith(session)]
        if not sessions or not session:
            raise NotFoundError(
                f"there is no session {to_one_line(session)} in {place}",
                hint="run `rekindle keep` without an id to list the sessions in this folder",
            )
    running = [found for found in sessions if found.is_running]
    chosen = running or sessions
    if not chosen:
        raise NotFoundError(
            f"no session of Claude Code, Codex or Gemini CLI was found in {place}",
            hint="start this command in the folder in which you started the session",
        )
    if len(chosen) == 1:
        return chosen[0]
    for found in chosen[:SESSIONS_LISTED]:
        echo(f"  {found.session}  {found.harness}  {_describe_process(found)}  {_quote(found)}")
    raise UsageError(
        f"which session? {len(chosen)} {'are running' if running else 'were found'} in this folder",
        hint=f"name one: `rekindle keep {chosen[0].session}`",
    )


def _describe_process(found: FoundSession) -> str:
    if not found.is_running and found.doubtful:
        return f"perhaps running (process {_list_pids(found.doubtful)})"
    if not found.is_running:
        return "not running"
    return f"process {', '.join(map(str, found.pids))}" if found.pids else "in the background"


def _list_pids(processes: Sequence[tuple[int, int]]) -> str:
    return ", ".join(str(pid) for pid, _ in processes)


def _quote(found: FoundSession) -> str:
    first = Redaction().text(read_session_state(found).first)
    return f"“{to_one_line(first, 60)}”" if first else ""


def _choose_agent(folder: Path, place: Path, found: FoundSession, agent: str | None) -> str:
    """Return the agent that gets the session: as given, the only one with this CLI, or a new one.

    Raises:
        OwnershipError: The agent is running, or works in another folder.
    """
    names = config.list_agents(folder)
    if agent is None:
        project = config.load_project(folder) if names else None
        same = [
            name for name in names if project and found.harness == find_harness(project, name).NAME
        ]
        if len(same) > 1:
            raise UsageError(
                f"which agent gets the session? {', '.join(same)} use {found.harness}",
                hint=f"name one, or a new one: `rekindle keep {found.session} {same[0]}`",
            )
        default = make_agent_name(folder.name)
        if not same and default in names:
            raise UsageError(
                f"no agent in this folder uses {found.harness}",
                hint=f"name a new agent: `rekindle keep {found.session} NAME`",
            )
        agent = same[0] if same else default
    name = require_agent_name(agent)
    if name not in names:
        return name
    project = config.load_project(folder)
    refuse_fleet(project)
    if found.harness != find_harness(project, name).NAME:
        raise UsageError(
            f"{name} uses {find_harness(project, name).NAME}, and the session {found.harness}",
            hint=f"name a new agent: `rekindle keep {found.session} NAME`",
        )
    if open_store(project).is_supervised(name):
        raise SupervisedError(name)
    work = (folder / (project.manifest.agents[name].dir or ".")).resolve()
    if project.manifest.agents[name].workspace or work != place.resolve():
        raise OwnershipError(
            f"{name} works in another folder than the session",
            hint=f"name a new agent: `rekindle keep {found.session} NAME`",
        )
    return name


def _refuse_caller(found: FoundSession) -> None:
    """Refuse to close the session that runs this command, or one that may be another."""
    own = found.processes.own if found.processes else ()
    if any(map(cli_processes.is_ancestor, own)):
        raise UsageError(
            "this command was started by the session itself",
            hint=f"run `rekindle keep {found.session}` in another terminal",
        )
    if not found.is_running and found.doubtful:
        raise OwnershipError(
            f"{found.harness} is running in this folder (process {_list_pids(found.doubtful)}), "
            "and it is not clear in which session",
            hint=f"close it yourself, then run `rekindle keep {found.session}` again",
        )


def _describe(
    found: FoundSession, state: SessionState, name: str, permissions: Sequence[str]
) -> None:
    echo(f"{found.harness} session {found.session}, {_describe_process(found)}")
    echo(f"  {render_count(state.prompts, 'prompt')}, the first one: {_quote(found)}")
    if found.is_running and state.call:
        echo(f"  it is in a tool call: {to_one_line(Redaction().text(state.call), 60)}")
    elif found.is_running and state.is_working:
        echo("  it is working")
    for line in (f"it will belong to the agent {name}", *permissions):
        echo(f"  {line}")


def _explain_permissions(
    folder: Path, name: str, harness: str, tools: PermissionLevel | None
) -> list[str]:
    """Return lines that tell what the agent may do, because calls are no longer confirmed.

    Raises:
        UsageError: --tools is given for an agent that has its permissions already.
    """
    begin = "from then on, calls run without your approval"
    if name not in config.list_agents(folder):
        level = tools or DEFAULT_LEVEL
        words = [f"{begin}: the agent may {render_may(explain_level(level, harness))}"]
        if narrower := list_narrower(level, harness):
            words.append(f"to permit less, use {' or '.join(narrower)}")
        return words
    if tools:
        raise UsageError(
            f"--tools is for a new agent, and {name} is in {MANIFEST_FILE} already",
            hint=f"change its persona in {MANIFEST_FILE}",
        )
    manifest = config.load_project(folder).manifest
    persona = manifest.agents[name].persona or AgentDefaults().persona
    if persona not in manifest.personas:
        return [f"{begin}, if {harness}'s own settings permit them"]
    return [f"{begin}, if the persona {to_one_line(persona)} in {MANIFEST_FILE} permits them"]


def _confirm(found: FoundSession, *, wait: bool, now: bool) -> None:
    if not sys.stdin.isatty():
        raise UsageError(
            "nothing was changed, because there is no terminal to ask for confirmation",
            hint="repeat the command with --yes",
        )
    if not found.is_running or wait:
        action = "Continue it"
    elif now:
        action = "Close it now, even during a tool call, and continue it"
    else:
        action = "Close it when its turn is over, and continue it"
    click.confirm(f"{action} under supervision?", default=True, abort=True)


def _set_up(
    folder: Path,
    name: str,
    found: FoundSession,
    state: SessionState,
    *,
    tools: PermissionLevel | None,
    trust: bool,
) -> list[str]:
    """Add the agent to the manifest if it is new, accept the settings, and return the changes."""
    is_new_folder = config.find_project(folder) is None or config.has_private_manifest(folder)
    names = config.list_agents(folder)
    did = []
    if name not in names:
        did = add_agent(folder, name, found.harness, yes=True, tools=tools)
        task = Redaction().text(state.first)[:KEEP_TASK_CHARACTERS]
        did += write_prompt(folder, None if _has_prompt(folder) else task or None)
        write_summarizer(folder)
        write_schema(folder)
    project = config.load_project(folder)
    if is_new_folder and not names:
        accept_project(project)
    ensure_trust(project, trust=trust)
    if is_trusted(folder):
        print_changes(name, accept_settings(project, name))
    open_store(project, say=print_note).create(name)
    return did


def _has_prompt(folder: Path) -> bool:
    return (folder / "PROMPT.md").exists()


def _close(found: FoundSession, refresh: close_session.Refresh, *, now: bool) -> None:
    """Close the session if it is running."""
    if not found.is_running:
        return
    if not now and read_session_state(found).is_working:
        echo("· waiting until the session's turn is over; --now closes it at once")
    last = found if now else close_session.wait_until_idle(refresh)
    if now and (call := read_session_state(found).call):
        echo(f"· interrupting a tool call: {to_one_line(Redaction().text(call), 60)}")
    close_session.close_session(last, refresh)
    if last.is_running:
        echo(f"✓ closed the session {found.session}")
