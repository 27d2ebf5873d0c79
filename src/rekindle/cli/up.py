"""`rekindle up`, `rekindle down`: agents in the background."""

import time
from collections.abc import Callable, Sequence
from functools import partial

import click

from rekindle.cli.options import accept_log, as_json, budget_option, open_project, require_operator
from rekindle.cli.output import echo, print_json
from rekindle.cli.stop import (
    end_background,
    running_unnamed,
    stop_without_manifest,
    stopping_of,
    wait_for_ends,
    wait_until,
)
from rekindle.cli.trust import ensure_trust, print_changes, trust_option
from rekindle.config import Project
from rekindle.errors import (
    AgentError,
    ManifestError,
    NewerSchemaError,
    RekindleError,
    StoreError,
    UnknownAgentError,
)
from rekindle.policy import endings
from rekindle.policy import run as policy
from rekindle.policy.fold import Projection
from rekindle.policy.row import Around, make_row
from rekindle.policy.settings import cycles_of
from rekindle.stores.files import FileStore
from rekindle.system import clock
from rekindle.thresholds.screens import UP_POLL_SECONDS, UP_SECONDS, UP_SETTLE_SECONDS
from rekindle.wiring import watch
from rekindle.wiring.run import check_settings
from rekindle.wiring.trust import accept_settings

_MEANWHILE = "was stopped meanwhile, and stays so"


@click.command()
@click.argument("agents", nargs=-1)
@click.option("--tmux", is_flag=True, help="A tmux window for each, in the session `rekindle`.")
@budget_option
@trust_option
@as_json
def up(agents: tuple[str, ...], tmux: bool, budget: str | None, trust: bool, as_json: bool) -> None:
    """Run AGENTS in the background, all that the manifest names where none is said.

    Each has a supervisor of its own that goes on when you log out. `rekindle daemon` starts those
    again that die; `rekindle service install` has it started with the host.
    """
    project, store = open_project()
    require_operator(project)
    names = [project.require_agent(name) for name in agents] or list(project.manifest.agents)
    ensure_trust(project, trust=trust)
    unbounded = budget == "none"
    rows = [_up(project, store, name, tmux=tmux, unbounded=unbounded) for name in names]
    if as_json:
        print_json({"agents": rows})
    else:
        for row in rows:
            echo(render_row(row))
        if tmux and names:
            echo(f"Look at them: {watch.attach_command()}")
    if any(row["error"] for row in rows):
        raise AgentError("not every agent was started", hint="`rekindle run NAME` shows why")


def render_row(row: dict[str, str]) -> str:
    """Return what became of one agent; further lines of a message are indented."""
    sign = "✗" if row["error"] else "✓"
    words = (row["error"] or row["state"]).replace("\n", "\n  ")
    return f"{sign} {row['agent']}: {words}"


def _up(
    project: Project, store: FileStore, name: str, *, tmux: bool, unbounded: bool
) -> dict[str, str]:
    row = {"agent": name, "state": "is running already", "error": ""}
    try:
        if store.is_deserted(name):
            # Its folder was wiped or replaced: it ends its agent, then another may be started.
            wait_until(lambda: not store.is_deserted(name))
        accept_log(store, name)
        check_settings(project, store, name)
        print_changes(name, accept_settings(project, name))
        if store.is_supervised(name):
            if store.read(name).projection.run.desired != "stopped":
                return row
            stopped = store.read(name).projection.run.said
            wait_until(lambda: not store.is_supervised(name))  # it was told to stop a moment ago
            if store.read(name).projection.run.said != stopped:
                return row | {"state": _MEANWHILE}
        # Said here and not by the supervisor: what is said while that comes up is the later word.
        # Noted before that: a watchdog that looks in between would start another.
        seen = store.read(name)
        watch.note_start(store, name, seen.committed.seq + len(seen.pending) + 1)
        cycles = cycles_of(project.manifest.agents[name])
        run, now = seen.projection.run, clock.now()
        store.submit(name, policy.say(run, "running", now, cycles, unbounded=unbounded))
        before = store.read(name).committed.seq
        if tmux:
            watch.start_in_tmux(project, name)
        else:
            watch.start(project, store, name)
        return row | {"state": "started"} | _came_up(store, name, before)
    except RekindleError as error:
        return row | {"error": str(error)}


def _came_up(store: FileStore, name: str, before: int) -> dict[str, str]:
    """Whether its supervisor lives, or has lived: a short task may be done by now."""
    deadline = time.monotonic() + UP_SECONDS
    settled = None
    while time.monotonic() < deadline:
        is_there, known = store.is_supervised(name), store.read(name).committed
        tried = [one for one in known.attempts.values() if one.seq > before]
        if known.run.desired == "stopped" and not is_there:
            return {"state": _MEANWHILE}
        if known.seq > before and known.run.is_over:
            return {"state": f"started, and {endings.outcome(known.run.ended.why).words}"}
        failed = [one.words for one in tried if one.exit not in {"", "clean"}]
        if failed and not is_there:
            return {"error": failed[-1]}
        if is_there and not tried and known.seq > before and (why := _held_back(known)):
            return {"state": why}
        if is_there and tried:
            # A program that cannot be started at all says so at once.
            settled = settled or time.monotonic() + UP_SETTLE_SECONDS
            if time.monotonic() > settled:
                return {"state": f"started; {failed[-1]}"} if failed else {}
        time.sleep(UP_POLL_SECONDS)
    return {} if settled else {"error": watch.last_words(store, name)}


def _held_back(known: Projection) -> str:
    """Return why a supervisor starts nothing; empty: it is about to."""
    row = make_row(known, Around(now=clock.now(), is_supervised=True))
    if row.state == "running":
        return ""
    return f"{row.label}: {row.reason}" + (f"; next: `{row.command}`" if row.command else "")


def _failures(actions: Sequence[Callable[[], None]]) -> list[RekindleError]:
    """Do all of them, also those behind one that fails."""
    found: list[RekindleError] = []
    for act in actions:
        try:
            act()
        except RekindleError as error:
            found.append(error)
    return found


@click.command()
@click.argument("agents", nargs=-1)
@as_json
def down(agents: tuple[str, ...], as_json: bool) -> None:
    """Stop AGENTS, all that the manifest names where none is said, and have them stay stopped."""
    stop_agents(agents, as_json=as_json)


def stop_agents(agents: Sequence[str], *, as_json: bool) -> None:
    """Stop agents, all of the manifest if none is named, and print what became of each."""
    try:
        project, store = open_project()
        named = [project.require_agent(name) for name in agents]
    except (ManifestError, NewerSchemaError, UnknownAgentError, StoreError) as error:
        stop_without_manifest(agents, error, every=True, as_json=as_json)
        return
    require_operator(project)
    names = named or [*project.manifest.agents, *running_unnamed(project)]
    stops = {name: stopping_of(store, name) for name in names}
    failed = _failures([stopping.tell for stopping in stops.values()])
    running = [name for name, stopping in stops.items() if stopping.was_running]
    left = wait_for_ends({name: stops[name] for name in running})
    failed += _failures(
        [
            partial(end_background, store, name, was_killed=stopping.was_killed)
            for name, stopping in stops.items()
        ]
    )
    failed += _failures([stops[name].require_record for name in names if name not in left])
    if as_json:
        stopped = [name for name in names if name not in left]
        print_json({"stopped": stopped, "were_running": running, "still_ending": left})
    else:
        for name in names:
            if name in left:
                echo(f"✗ {name}: still ending")
            else:
                state = "stopped" if name in running else "is not running, and stays so"
                echo(f"✓ {name}: {state}")
    if failed:
        for other in failed[1:]:
            echo(f"Error: {other}", err=True)
        raise failed[0]
    if left:
        raise AgentError(
            f"still ending: {', '.join(left)}", hint="the stop is kept: see `rekindle status`"
        )
