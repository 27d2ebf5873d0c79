"""`rekindle export` and `rekindle import`: move an agent to another machine or folder."""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from rekindle import config
from rekindle.cli.fleet_refusal import refuse_fleet
from rekindle.cli.options import (
    find_current_folder,
    json_option,
    print_note,
    require_operator,
    resolve_agent,
)
from rekindle.cli.output import echo, print_json
from rekindle.cli.setup.initial_files import write_prompt, write_schema, write_summarizer
from rekindle.documents import agent_export
from rekindle.errors import UsageError, translate_os_errors
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.keeping.imported_personas import FittedSettings
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.system.files import durable_files
from rekindle.thresholds.screens import SHORT_COMMIT_CHARACTERS
from rekindle.wiring.access.operator_check import refuse_agent_of
from rekindle.wiring.keeping import import_agent as importing
from rekindle.wiring.keeping.export_agent import ExportResult, export_agent
from rekindle.wiring.keeping.import_agent import PlannedImport
from rekindle.wiring.keeping.moved_snapshot import AddedSnapshot
from rekindle.wiring.open_store import open_store

_FRESH = "the agent's next launch starts a fresh session"


@click.command(name="export")
@click.argument("agent")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--no-snapshot", is_flag=True, help="Leave out the files of the project.")
@json_option
def export_command(agent: str, file: Path | None, no_snapshot: bool, as_json: bool) -> None:
    """Write AGENT to FILE, to continue it on another machine or in another folder.

    FILE contains the log, the relay, the loops, the transcripts, the agent's keys in rekindle.yaml
    and the session that it would resume, with secrets redacted and with checksums. In a git
    repository, it also contains a snapshot of your project's files as they are, without commits.
    The agent must be stopped. The default FILE is .rekindle/exports/AGENT.rekindle, which git
    ignores.
    """
    project = config.load_project(find_current_folder())
    require_operator(project)
    refuse_fleet(project)
    name = resolve_agent(project, agent)
    store = open_store(project, say=print_note)
    path = file or _make_folder(store.root) / f"{name}{agent_export.FILE_SUFFIX}"
    _refuse_place(path)
    exported = export_agent(project, store, name, with_files=not no_snapshot)
    durable_files.replace_file(path, exported.data)
    header = exported.header
    if as_json:
        print_json(
            {
                "agent": name,
                "file": str(path),
                "session": header.session,
                "snapshot": header.snapshot.name if header.snapshot else "",
                "omitted": list(header.omitted),
            }
        )
    else:
        _print_export(path, exported)


def _make_folder(root: RekindleFolder) -> Path:
    """Return the folder for exported agents, and create it if it is missing."""
    root.make()
    durable_files.refuse_link(root.exports)
    durable_files.make_folder(root.exports)
    return root.exports


def _refuse_place(path: Path) -> None:
    """Refuse a file that exists, or whose folder does not exist."""
    with translate_os_errors(path.parent):
        if not path.parent.is_dir():
            raise UsageError(
                f"there is no folder {to_one_line(str(path.parent))}",
                hint="create it, or name a file in another folder",
            )
    if durable_files.path_exists(path):
        raise UsageError(
            f"{to_one_line(str(path))} exists already", hint="remove it, or name another file"
        )


def _print_export(path: Path, exported: ExportResult) -> None:
    header, here = exported.header, find_current_folder()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    echo(f"✓ wrote {to_one_line(str(shown))} ({len(exported.data):,} bytes)")
    if header.session:
        echo(f"· it continues the session {header.session}")
    else:
        echo(f"· not in the file: a session to resume; {_FRESH}")
    if header.snapshot:
        echo(f"· your project's files are in it as snapshot {header.snapshot.name}, unredacted")
    else:
        echo(f"· not in the file: your project's files ({to_one_line(exported.left_out)})")
    if header.omitted:
        echo(f"· not in the file: the values of {_join(header.omitted)} in `env:`")
    if exported.shared:
        echo(
            f"· not in the file: {_join(exported.shared)}, which all agents share in rekindle.yaml"
        )
    command = shlex.join(["rekindle", "import", path.name])
    echo(f"Next: copy the file, and run `{command}` in the project's folder there.")
    echo(f"      Do not run {header.agent} here any more, because both would do the same work.")


@click.command(name="import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Import without asking for confirmation.")
@click.option("--no-snapshot", is_flag=True, help="Leave out the files of the project.")
@json_option
def import_command(file: Path, yes: bool, no_snapshot: bool, as_json: bool) -> None:
    """Create an agent from FILE, which `rekindle export` wrote.

    Start this in the folder of the project. The command shows the keys that it adds to
    rekindle.yaml, and asks once. A file that is torn or was changed is refused, and an agent that
    exists is never overwritten. The project's files in FILE become a snapshot, which `rekindle
    rewind` restores. If the command is interrupted, run it again.
    """
    place = find_current_folder()
    folder = config.find_project(place) or place
    refuse_agent_of(folder, config.list_agents(folder), "rekindle import")
    if not durable_files.path_exists(file):
        raise UsageError(
            f"there is no file {to_one_line(str(file))}",
            hint="name the file that `rekindle export AGENT` wrote",
        )
    with durable_files.open_user_file(file) as opened:
        export = agent_export.parse(opened, to_one_line(file.name))
        planned = importing.plan_import(folder, export, with_files=not no_snapshot)
        if not yes:
            _confirm(planned)
        added = importing.import_agent(planned)
    write_summarizer(folder)
    write_schema(folder)
    did = write_prompt(folder)
    header = export.header
    if as_json:
        snapshot = added.name if added else ""
        print_json(
            {
                "agent": header.agent,
                "session": header.session,
                "snapshot": snapshot,
                "personas": dict(planned.settings.renamed) if planned.settings else {},
                "did": did,
            }
        )
    else:
        _print_import(planned, added, did)


def _print_import(planned: PlannedImport, added: AddedSnapshot | None, did: Sequence[str]) -> None:
    header = planned.export.header
    echo(f"✓ imported {header.agent}, exported from {to_one_line(header.folder)}")
    if planned.settings:
        echo("✓ added it to rekindle.yaml")
        for line in _explain_personas(planned.settings):
            echo(f"· {line}")
    if header.session:
        echo(f"· its next launch continues the session {header.session}")
    else:
        echo(f"· {_FRESH}")
    for line in did:
        echo(f"✓ {line}")
    if added:
        _print_snapshot(added)
    if planned.settings and header.omitted:
        echo(f"Next: set {_join(header.omitted)} below `env:` in rekindle.yaml.")
    if planned.undefined:
        echo(f"Next: define {_join(planned.undefined)} below `accounts:` in rekindle.yaml.")
    echo(f"Next: `rekindle status {header.agent}`, then `rekindle run {header.agent}`.")


def _print_snapshot(added: AddedSnapshot) -> None:
    echo(f"✓ added the snapshot {added.name} with the files of the project")
    if added.missing:
        commit = added.missing[:SHORT_COMMIT_CHARACTERS]
        echo(f"· its commit {commit} is not in this repository, so it has the files only")
    if added.is_automatic:
        agent = added.name.partition("/")[0]
        echo(f"· `rekindle run {agent}` starts with them, in the agent's own checkout")
    else:
        echo(f"Next: `rekindle rewind {added.name}` if the files here are not up to date.")


def _confirm(planned: PlannedImport) -> None:
    header = planned.export.header
    if not sys.stdin.isatty():
        raise UsageError(
            "nothing was imported, because there is no terminal to ask for confirmation",
            hint="read the agent's keys with `head -2 FILE`, and repeat the command with --yes",
        )
    echo(f"{header.agent}, exported from {to_one_line(header.folder)}", err=True)
    if planned.settings:
        echo("This is added to rekindle.yaml. Its keys may name programs to run:", err=True)
        for line in agent_export.render_settings(planned.settings.header).splitlines():
            echo(f"  {line}", err=True)
        for line in _explain_personas(planned.settings):
            echo(f"· {line}", err=True)
    else:
        echo("rekindle.yaml has this agent already. Its keys there stay as they are.", err=True)
    echo("The agent's log will count as yours, without its approvals and raised caps.", err=True)
    click.confirm("Import it?", default=False, abort=True, err=True)


def _explain_personas(settings: FittedSettings) -> list[str]:
    """Return a line for each persona of the file that has another name here, or is left out."""
    renamed = [
        f"its persona {to_one_line(old)} is called {to_one_line(new)} here, because other agents "
        f"may use {to_one_line(old)}"
        for old, new in settings.renamed.items()
    ]
    if settings.unused:
        renamed.append(f"not added, because the agent does not use it: {_join(settings.unused)}")
    return renamed


def _join(names: Sequence[str]) -> str:
    return to_one_line(", ".join(names))
