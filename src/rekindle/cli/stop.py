"""`rekindle stop`, `rekindle restart`: the operator's word, durable and above every marker."""

import time

import click

from rekindle.cli.options import as_json, open_agent, print_json
from rekindle.documents.event import RestartAsked
from rekindle.errors import AgentError
from rekindle.policy import run as policy
from rekindle.policy.settings import STOP_SECONDS
from rekindle.stores.files import FileStore
from rekindle.system import clock

_PATIENCE_SECONDS = 2 * STOP_SECONDS + 5
_LOOK_SECONDS = 0.1


@click.command()
@click.argument("agent", required=False)
@as_json
def stop(agent: str | None, as_json: bool) -> None:
    """Stop AGENT, and have it stay stopped: nobody starts it until you say so.

    It is asked to end, and killed when it has not within ten seconds; `rekindle run` goes on where
    it was.
    """
    _project, store, name = open_agent(agent)
    say_stopped(store, name)
    was_running = store.is_supervised(name)
    if was_running and not wait_until_ended(store, name):
        raise AgentError(
            f"{name} is to stop, and its supervisor has not ended yet",
            hint="its word is kept: look again with `rekindle status`",
        )
    if as_json:
        print_json({"agent": name, "desired": "stopped", "was_running": was_running})
    else:
        click.echo(f"✓ {name}: {'stopped' if was_running else 'is not running, and stays so'}")


@click.command()
@click.argument("agent", required=False)
@click.option("--fresh", is_flag=True, help="In a fresh session, not in the one there is.")
@as_json
def restart(agent: str | None, fresh: bool, as_json: bool) -> None:
    """Start AGENT again now: out of safe mode, out of a wait, or out of what it is doing.

    What it spent stays counted, unless its run was over: then a new one begins.
    """
    _project, store, name = open_agent(agent)
    store.create(name)
    if fresh:
        store.folder(name).ask_for_fresh()
    store.folder(name).clean_exit.unlink(missing_ok=True)
    now, run = clock.now(), store.read(name).projection.run
    store.submit(name, RestartAsked(ts=now, fresh=fresh), policy.say(run, "running", now))
    is_supervised = store.is_supervised(name)
    if as_json:
        print_json({"agent": name, "desired": "running", "supervised": is_supervised})
        return
    click.echo(f"✓ {name}: will be started again{' in a fresh session' if fresh else ''}")
    if not is_supervised:
        click.echo(
            f"Next: `rekindle run {name}`, or `rekindle up` to have it kept in the background."
        )


def say_stopped(store: FileStore, name: str) -> None:
    store.create(name)
    run = store.read(name).projection.run
    store.submit(name, policy.say(run, "stopped", clock.now()))


def wait_until_ended(store: FileStore, name: str) -> bool:
    """Whether its supervisor has ended within a reasonable time."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while store.is_supervised(name):
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True
