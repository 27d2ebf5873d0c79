"""`rekindle adopt`: import files from another agent loop."""

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
from rekindle.cli.setup.initial_files import write_prompt
from rekindle.config import Project
from rekindle.errors import UsageError
from rekindle.flows import adopt_documents as flow
from rekindle.formats.identifiers import (
    make_agent_name,
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
@click.option(
    "-a", "--agent", metavar="NAME", help=("Name of the agent, as an alternative to AGENT.")
)
@click.option("--harness", metavar="NAME", help="CLI to use if the agent is new.")
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
    """Import files from another agent loop.

    PATH is a relay such as consensus.md, a memories folder that contains one, or a Phoenix folder
    with state.json, brief.md and resolved.jsonl. Rekindle records the files as if you had written
    them for AGENT. Without AGENT, it uses the name in the imported state. A new agent is set up in
    the same way as with `rekindle init`. PATH itself is not changed. Adopting it again has no
    effect.
    """
    agent = choose_named(named, agent)
    folder = config.find_project(find_current_folder()) or find_current_folder()
    documents = sources.read_found(path)
    _refuse_own(path, folder)
    project = _find_project(folder)
    settings = project.settings if project else Settings()
    cap = settings.runtime.relay.max_relay_tokens
    plan = adoption.plan_adoption(
        cap,
        relay=documents.parts.get(RELAY),
        brief=documents.parts.get(BRIEF),
        state=documents.parts.get(STATE),
        resolved=documents.parts.get(RESOLVED),
    )
    named = plan.state.agent if plan.state else ""
    name = _choose_name(folder, agent, named)
    did = []
    if name not in config.list_agents(folder):
        did = [*add_agent(folder, name, harness, yes=True), *write_prompt(folder)]
    store = open_store(config.load_project(folder), say=print_note)
    adopted = flow.adopt_documents(store, name, documents, plan, cap=cap, take_over=take_over)
    secrets = sum(
        store.redaction.count(part, store.redaction.data(part)) for part in documents.parts.values()
    )
    left = (*plan.left, *documents.left)
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
        echo(f"{name}: nothing to do: already imported, and not changed since")
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
    _print_next(name, documents)


def _find_project(folder: Path) -> Project | None:
    if not config.find_project(folder):
        return None
    project = config.load_project(folder)
    refuse_fleet(project)
    return project


def _choose_name(folder: Path, agent: str | None, named: str) -> str:
    """Return the agent that gets the files: as given, as named in the files, or the only agent."""
    if agent is not None:
        return require_agent_name(agent)
    if named:
        try:
            return require_agent_name(named)
        except UsageError as unfit:
            unfit.hint = f"name its agent: `rekindle adopt PATH AGENT` ({unfit.hint})"
            raise
    names = config.list_agents(folder)
    if len(names) > 1:
        raise UsageError(
            f"which agent? rekindle.yaml has {', '.join(names[:AGENTS_NAMED])}",
            hint=f"name one: `rekindle adopt PATH {names[0]}`",
        )
    return names[0] if names else require_agent_name(make_agent_name(folder.name))


def _refuse_own(path: Path, folder: Path) -> None:
    if path.resolve().is_relative_to((folder / REKINDLE_FOLDER).resolve()):
        raise UsageError(
            f"{to_one_line(str(path))} is already in Rekindle's own folder",
            hint="`rekindle relay set FILE` restores an older relay",
        )


def _print_next(name: str, documents: FoundDocuments) -> None:
    if RELAY not in documents.parts:
        echo(f"Next: `rekindle relay set FILE -a {name}` gives the agent a next action.")
    echo(f"Next: check `rekindle status {name}`, then run `rekindle run {name}`.")
