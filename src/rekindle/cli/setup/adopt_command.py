"""`rekindle adopt`."""

from pathlib import Path

import click

from rekindle import config
from rekindle.cli.fleet_refusal import refuse_fleet
from rekindle.cli.options import (
    choose_named,
    find_current_folder,
    json_option,
    print_note,
    take_over_option,
)
from rekindle.cli.output import (
    echo,
    print_json,
    print_styled,
)
from rekindle.cli.setup.init_command import add_agent
from rekindle.cli.setup.initial_files import make_default_name, write_prompt
from rekindle.config import Project
from rekindle.errors import UsageError
from rekindle.flows import adopt_documents as flow
from rekindle.formats.identifiers import (
    require_agent_name,
    to_one_line,
)
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.policy.setup import adoption
from rekindle.stores import foreign_documents as sources
from rekindle.stores.folders.agent_folder import REKINDLE_FOLDER
from rekindle.stores.foreign_documents import (
    BRIEF,
    RELAY,
    RESOLVED,
    STATE,
    FoundDocuments,
)
from rekindle.thresholds.screens import AGENTS_NAMED
from rekindle.wiring.open_store import open_store


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.argument("named", required=False, metavar="[AGENT]")
@click.option("-a", "--agent", metavar="NAME", help="The agent; the same as AGENT.")
@click.option("--harness", metavar="NAME", help="CLI of the agent, if it is new.")
@take_over_option
@json_option
def adopt(
    *,
    path: Path,
    named: str | None,
    agent: str | None,
    harness: str | None,
    take_over: bool,
    as_json: bool,
) -> None:
    """Import the files that another agent loop has left behind.

    PATH is a relay such as consensus.md, a memories folder with one, or a Phoenix folder with
    state.json, brief.md and resolved.jsonl. The files are recorded as if you had written them for
    AGENT; without AGENT, for the one that their state names. An agent that does not exist yet is
    set up as by `rekindle init`. PATH itself stays unchanged, and adopting it twice changes
    nothing.
    """
    agent = choose_named(named, agent)
    folder = config.find_project(find_current_folder()) or find_current_folder()
    found = sources.read_found(path)
    _refuse_own(path, folder)
    project = _find_project(folder)
    settings = project.settings if project else Settings()
    cap = settings.runtime.relay.max_relay_tokens
    plan = adoption.plan_adoption(
        cap,
        relay=found.parts.get(RELAY),
        brief=found.parts.get(BRIEF),
        state=found.parts.get(STATE),
        resolved=found.parts.get(RESOLVED),
    )
    named = plan.state.agent if plan.state else ""
    name = _choose_name(folder, agent, named)
    did = []
    if name not in config.list_agents(folder):
        did = [*add_agent(folder, name, harness, yes=True), *write_prompt(folder)]
    store = open_store(config.load_project(folder), say=print_note)
    adopted = flow.adopt_documents(store, name, found, plan, cap=cap, take_over=take_over)
    secrets = sum(
        store.redaction.count(one, store.redaction.data(one)) for one in found.parts.values()
    )
    left = (*plan.left, *found.left)
    if as_json:
        print_json(
            {
                "agent": name,
                "adopted": not adopted.is_known,
                "did": did,
                "took": adopted.took,
                "trimmed": adopted.trimmed,
                "over_cap": adopted.over_cap,
                "left_out": left,
                "redacted": secrets,
            }
        )
        return
    for line in did:
        echo(f"✓ {line}")
    if adopted.is_known:
        echo(f"{name}: nothing to do: this was imported before, and has not changed since")
        return
    for line in adopted.took:
        echo(f"✓ imported {line}")
    if adopted.trimmed:
        where = store.folder(name).path / adopted.trimmed
        echo(f"  trimmed to its cap; the rest is in {where}")
    if adopted.over_cap:
        print_styled("  ! the relay is still over its cap: shorten its Next Action", fg="yellow")
    if secrets:
        print_styled(
            f"  ! secrets redacted: {secrets:,}; `rekindle redact FILE` shows where", fg="yellow"
        )
    for line in left:
        echo(f"· left out {line}")
    _print_next(name, found)


def _find_project(folder: Path) -> Project | None:
    if not config.find_project(folder):
        return None
    project = config.load_project(folder)
    refuse_fleet(project)
    return project


def _choose_name(folder: Path, given: str | None, named: str) -> str:
    """Return the agent that gets the files: the given, the named or the only agent."""
    if given is not None:
        return require_agent_name(given)
    if named:
        try:
            return require_agent_name(named)
        except UsageError as unfit:
            unfit.hint = f"name its agent: `rekindle adopt PATH AGENT` ({unfit.hint})"
            raise
    known = config.list_agents(folder)
    if len(known) > 1:
        raise UsageError(
            f"which agent? rekindle.yaml has {', '.join(known[:AGENTS_NAMED])}",
            hint=f"name one: `rekindle adopt PATH {known[0]}`",
        )
    return known[0] if known else require_agent_name(make_default_name(folder))


def _refuse_own(path: Path, folder: Path) -> None:
    if path.resolve().is_relative_to((folder / REKINDLE_FOLDER).resolve()):
        raise UsageError(
            f"{to_one_line(str(path))} is already in Rekindle's own folder",
            hint="`rekindle relay set FILE` restores an older relay",
        )


def _print_next(name: str, found: FoundDocuments) -> None:
    if RELAY not in found.parts:
        echo(f"Next: `rekindle relay set FILE -a {name}` gives the agent a next action.")
    echo(f"Next: check `rekindle status {name}`, then run `rekindle run {name}`.")
