"""`rekindle stop`, `restart`, `answer`: the operator's word, durable and above every marker."""

import time
from contextlib import suppress

import click

from rekindle.cli.options import Store, as_json, open_agent
from rekindle.cli.output import echo, print_json
from rekindle.cli.trust import ensure_trust, print_changes, trust_option
from rekindle.documents.event import Answered, RestartAsked
from rekindle.documents.identity import visible
from rekindle.errors import AgentError, SupervisedError, UsageError
from rekindle.flows.background import end_everything
from rekindle.policy import run as policy
from rekindle.policy.fold import Projection
from rekindle.policy.settings import STOP_SECONDS
from rekindle.stores.files import FileStore
from rekindle.system import clock
from rekindle.system.processes import Processes
from rekindle.wiring.trust import accept_settings

_PATIENCE_SECONDS = 2 * STOP_SECONDS + 5
_LOOK_SECONDS = 0.2
_ANSWER_CHARACTERS = 8_000


@click.command()
@click.argument("agent", required=False)
@as_json
def stop(agent: str | None, as_json: bool) -> None:
    """Stop AGENT, and have it stay stopped: nobody starts it until you say so.

    It is asked to end, and killed when it has not within ten seconds; `rekindle run` goes on where
    it was.
    """
    _project, store, name = open_agent(agent)
    was_running = store.is_supervised(name)  # a moment after our word it may have ended
    say_stopped(store, name)
    if not wait_until_ended(store, name):
        raise AgentError(
            f"{name} is to stop, and its supervisor has not ended yet",
            hint="its word is kept: look again with `rekindle status`",
        )
    end_background(store, name)
    if as_json:
        print_json({"agent": name, "desired": "stopped", "was_running": was_running})
    else:
        echo(f"✓ {name}: {'stopped' if was_running else 'is not running, and stays so'}")


@click.command()
@click.argument("agent", required=False)
@click.option("--fresh", is_flag=True, help="In a fresh session, not in the one there is.")
@trust_option
@as_json
def restart(agent: str | None, fresh: bool, trust: bool, as_json: bool) -> None:
    """Start AGENT again now: out of safe mode, out of a wait, or out of what it is doing.

    What it spent stays counted, unless its run was over: then a new one begins.
    """
    project, store, name = open_agent(agent)
    ensure_trust(project, trust=trust)
    print_changes(name, accept_settings(project, name))
    store.create(name)
    store.clear_the_way(name, fresh=fresh)
    now, run = clock.now(), store.read(name).projection.run
    store.submit(name, RestartAsked(ts=now, fresh=fresh), policy.say(run, "running", now))
    is_supervised = store.is_supervised(name)
    if as_json:
        print_json({"agent": name, "desired": "running", "supervised": is_supervised})
        return
    echo(f"✓ {name}: will be started again{' in a fresh session' if fresh else ''}")
    if not is_supervised:
        echo(f"Next: `rekindle run {name}`, or `rekindle up` to have it kept in the background.")


@click.command()
@click.argument("agent")
@click.argument("text", nargs=-1, required=True)
@as_json
def answer(agent: str, text: tuple[str, ...], as_json: bool) -> None:
    """Answer what AGENT waits for: its next cycle is told TEXT, and it goes on."""
    _project, store, name = open_agent(agent)
    store.create(name)
    found = store.read(name).projection
    words = visible(" ".join(text)).strip()
    if not words or len(words) > _ANSWER_CHARACTERS:
        raise UsageError(
            f"an answer has 1 to {_ANSWER_CHARACTERS:,} characters, and this one {len(words):,}",
            hint="say it shorter, and put the rest into a file that the agent can read",
        )
    asked = _waited_for(found)
    store.clear_the_way(name)
    now = clock.now()
    store.submit(
        name, Answered(ts=now, text=words, asked=asked), policy.say(found.run, "running", now)
    )
    if as_json:
        print_json({"agent": name, "answered": words, "asked": asked})
        return
    echo(f"✓ {name}: its next cycle is told")
    if not store.is_supervised(name):
        echo(f"Next: `rekindle run {name}`, or `rekindle up` to have it kept in the background.")


def _waited_for(found: Projection) -> str:
    last = found.last_ended
    return last.about if last is not None and last.verdict == "waiting" else ""


def say_stopped(store: Store, name: str) -> None:
    store.create(name)
    run = store.read(name).projection.run
    store.submit(name, policy.say(run, "stopped", clock.now()))


def end_background(store: Store, name: str) -> None:
    """End what a supervisor that was killed could not end; on a fleet each host does so itself."""
    if not isinstance(store, FileStore):
        return
    with suppress(SupervisedError), store.supervising(name):
        attempts = store.read(name).projection.attempts
        end_everything(store.root.project, name, Processes(), attempts, patience=STOP_SECONDS)


def wait_until_ended(store: Store, name: str) -> bool:
    """Whether its supervisor has ended within a reasonable time."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while store.is_supervised(name):
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_SECONDS)
    return True
