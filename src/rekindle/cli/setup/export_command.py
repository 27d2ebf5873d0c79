"""`rekindle export` and `rekindle import`: move an agent to another machine or folder."""

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
from rekindle.errors import UsageError
from rekindle.formats.identifiers import to_one_line
from rekindle.system.files import durable_files
from rekindle.thresholds.keep_limits import EXPORT_BYTES
from rekindle.wiring.access.operator_check import refuse_agent_of
from rekindle.wiring.keeping import import_agent as importing
from rekindle.wiring.keeping.export_agent import export_agent
from rekindle.wiring.open_store import open_store


@click.command(name="export")
@click.argument("agent")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@json_option
def export_command(agent: str, file: Path | None, as_json: bool) -> None:
    """Write AGENT to FILE, to continue it on another machine or in another folder.

    FILE contains the log, the relay, the loops, the transcripts, the agent's keys in rekindle.yaml
    and the session that it would resume, with secrets redacted and with checksums. It does not
    contain your project's files. The agent must be stopped. The default name is AGENT.rekindle.
    """
    project = config.load_project(find_current_folder())
    require_operator(project)
    refuse_fleet(project)
    name = resolve_agent(project, agent)
    path = file or find_current_folder() / f"{name}.rekindle"
    if durable_files.path_exists(path):
        raise UsageError(f"{to_one_line(str(path))} exists already", hint="name another file")
    exported = export_agent(project, open_store(project, say=print_note), name)
    durable_files.replace_file(path, exported.data)
    if as_json:
        print_json({"agent": name, "file": str(path), "session": exported.session})
        return
    echo(f"✓ wrote {to_one_line(str(path))} ({len(exported.data):,} bytes)")
    if exported.session:
        echo(f"· it continues the session {exported.session}")
    echo(
        f"Next: copy the file, and run `rekindle import {path.name}` in the project's folder there."
    )
    echo(f"      Do not run {name} here any more, because both would do the same work.")


@click.command(name="import")
@click.argument("file", type=click.Path(path_type=Path))
@json_option
def import_command(file: Path, as_json: bool) -> None:
    """Create an agent from FILE, which `rekindle export` wrote.

    Start this in the folder of the project. A file that is torn or was changed is refused, and an
    agent that exists is never overwritten. If the command is interrupted, run it again.
    """
    place = find_current_folder()
    folder = config.find_project(place) or place
    refuse_agent_of(folder, config.list_agents(folder), "rekindle import")
    data = durable_files.read_user_file(file, EXPORT_BYTES)
    export = agent_export.parse(data, to_one_line(file.name))
    imported = importing.import_agent(folder, export, data)
    write_summarizer(folder)
    write_schema(folder)
    did = write_prompt(folder)
    if as_json:
        print_json({"agent": imported.agent, "session": imported.session, "did": did})
        return
    name = imported.agent
    echo(f"✓ imported {name}, exported from {to_one_line(export.header.folder)}")
    if imported.is_entry_new:
        echo("✓ added it to rekindle.yaml: check its keys, which may name programs to run")
    if imported.session:
        echo(f"· its next launch continues the session {imported.session}")
    for line in did:
        echo(f"✓ {line}")
    echo(f"Next: `rekindle status {name}`, then `rekindle run {name}`.")
