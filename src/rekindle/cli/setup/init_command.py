"""`rekindle init`: set up an agent."""

import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import cast

import click

from rekindle import config
from rekindle.cli.options import (
    choose_named,
    find_current_folder,
    json_option,
    print_note,
)
from rekindle.cli.output import echo, print_json
from rekindle.cli.setup.initial_files import (
    write_prompt,
    write_schema,
    write_summarizer,
)
from rekindle.documents import manifest, manifest_edit
from rekindle.errors import (
    RekindleError,
    UsageError,
    translate_os_errors,
)
from rekindle.formats import yaml_lines
from rekindle.formats.identifiers import (
    make_agent_name,
    require_agent_name,
    to_one_line,
)
from rekindle.plugins import ALIASES, BUILT_IN, find_program
from rekindle.policy.settings.runtime_settings import (
    RELAY_BYTES,
    AgentDefaults,
)
from rekindle.policy.setup.permissions import (
    DEFAULT_LEVEL,
    PERMISSION_LEVELS,
    PermissionLevel,
    explain_level,
    explain_rest,
    make_permissions,
    make_persona_name,
)
from rekindle.policy.setup.propose_until import (
    READ_FILES,
    propose_until,
    render_until_lines,
)
from rekindle.system.processes import program_search
from rekindle.wiring.access.operator_check import refuse_agent_of
from rekindle.wiring.access.trust_checks import (
    accept_project,
    accept_settings,
    explain_unaccepted,
    has_anything_to_trust,
    is_trusted,
)
from rekindle.wiring.open_store import (
    HARNESSES,
    open_store,
)
from rekindle.wiring.starting.start_checks import read_task

_CHANGE_INSTEAD = {
    "tools": f"change its persona in {manifest.MANIFEST_FILE}",
    "task": "write its task into its prompt file",
    "until": f"change its `until:` in {manifest.MANIFEST_FILE}",
    "command": f"change its `command:` in {manifest.MANIFEST_FILE}",
}
"""Hint for each option that applies only to a new agent."""


@click.command()
@click.argument("named", required=False, metavar="[AGENT]")
@click.option(
    "-a", "--agent", metavar="NAME", help=("Name of the agent, as an alternative to AGENT.")
)
@click.option(
    "--harness",
    metavar="NAME",
    help=f"The agent's CLI: {', '.join(BUILT_IN)}, or a plugin's name.",
)
@click.option(
    "--tools",
    type=click.Choice(list(PERMISSION_LEVELS)),
    help=(
        "What the agent may do: read files, edit this folder, or edit and run commands. "
        f"Default without a terminal or with --yes: {DEFAULT_LEVEL}."
    ),
)
@click.option("--task", metavar="TEXT", help="The agent's task, which is written to PROMPT.md.")
@click.option(
    "--until",
    metavar="COMMAND",
    help="Command that checks whether the work is done. Default: the project's tests, if found.",
)
@click.option("--command", metavar="COMMAND", help="Command that runs your own agent program.")
@click.option("--yes", is_flag=True, help="Use the defaults without asking.")
@json_option
def init(
    *,
    named: str | None,
    agent: str | None,
    harness: str | None,
    tools: PermissionLevel | None,
    task: str | None,
    until: str | None,
    command: str | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Set up AGENT in this folder. The default name is the folder's name.

    This writes a short rekindle.yaml, the agent's folder in .rekindle, and PROMPT.md if there is
    none. If Rekindle finds the project's test command, it uses it for `until:`. Run `rekindle init
    AGENT` again to add another agent.
    """
    agent = choose_named(named, agent)
    folder = config.find_project(find_current_folder()) or find_current_folder()
    is_new_folder = not has_anything_to_trust(folder)
    trusted = is_new_folder or is_trusted(folder)
    names = config.list_agents(folder)
    accepts = trusted and _is_accepted(folder)
    if accepts:
        refuse_agent_of(folder, names, "rekindle init")
    is_there = bool(names) and agent is None
    name = names[0] if is_there else _choose_name(folder, agent, yes=yes)
    options = {"tools": tools, "task": task, "until": until, "command": command}
    _refuse_unusable(folder, name, options, is_known=name in names)
    if is_there:
        did = [f"{manifest.MANIFEST_FILE} already exists, with {', '.join(names)}"]
    else:
        chosen = _choose_entry(harness or (command and "command"), yes=yes, tools=tools)
        # Another process may have created a manifest while the prompt was open.
        is_new_folder = is_new_folder and not has_anything_to_trust(folder)
        did = _write_manifest(folder, name, *chosen, until=until, command=command)
    did += write_prompt(folder, task)
    write_summarizer(folder)
    write_schema(folder)
    project = config.load_project(folder)
    _accept_agent(
        project, name, is_new_folder=is_new_folder, is_added=accepts and name not in names
    )
    stands = project.manifest.agents[name].harness
    store = open_store(project, say=print_note)
    is_new = not store.exists(name)
    store.create(name)
    if is_new:
        did.append(f"created {store.folder(name).path.relative_to(folder)}")
    if as_json:
        print_json(
            {"agent": name, "harness": stands, "folder": to_one_line(str(folder)), "did": did}
        )
        return
    for line in did:
        echo(f"✓ {line}")
    if stands == "command" and not project.manifest.agents[name].command:
        echo(f"Next: add `command: ./your-program` to {name} in {manifest.MANIFEST_FILE}.")
        echo("      It writes its relay to the file named in REKINDLE_RELAY; DONE ends the run.")
    if words := _explain_shared_task(project, name):
        echo(f"· {words}")
    if not is_trusted(folder):
        echo(
            "· this folder came with a manifest: the first `rekindle run` asks whether you trust it"
        )
    echo(f"Next: {_render_task_step(project, name)}`rekindle run {name}`.")


def _refuse_unusable(
    folder: Path, name: str, options: Mapping[str, str | None], *, is_known: bool
) -> None:
    """Refuse options that would have no effect, before anything is written."""
    for option, value in options.items():
        if value is not None and not value.strip():
            raise UsageError(f"--{option} is empty", hint="leave it out, or give it a text")
        if value is not None and is_known:
            raise UsageError(
                f"--{option} is for a new agent, and {name} is in {manifest.MANIFEST_FILE} already",
                hint=_CHANGE_INSTEAD[option],
            )
    prompt = AgentDefaults().prompt
    if options["task"] is not None and not _is_untouched(folder / prompt):
        raise UsageError(
            f"{prompt} has a task already", hint=f"edit {prompt}, or leave --task out to keep it"
        )


def _is_untouched(prompt: Path) -> bool:
    """Return whether a prompt file is missing, blank, or unchanged since `init` wrote it."""
    if not prompt.exists():
        return True
    with translate_os_errors(prompt):
        text = prompt.read_text(encoding="utf-8", errors="replace")
    return not text.strip() or text == manifest.DEFAULT_PROMPT


def _explain_shared_task(project: config.Project, name: str) -> str:
    """Return a note that other agents use the same prompt file, or "" if there are none."""
    prompts = {
        agent: entry.prompt or AgentDefaults().prompt
        for agent, entry in project.manifest.agents.items()
    }
    others = [agent for agent, prompt in prompts.items() if prompt == prompts[name]]
    others.remove(name)
    if not others:
        return ""
    where = f"`prompt:` in {manifest.MANIFEST_FILE}"
    return f"{prompts[name]} is also the task of {', '.join(others)}: {where} gives {name} its own"


def _render_task_step(project: config.Project, name: str) -> str:
    """Return the step that the operator must take before `run`, or "" if the agent has a task."""
    with suppress(RekindleError):
        read_task(project, name)
        return ""
    prompt = project.manifest.agents[name].prompt or AgentDefaults().prompt
    return f"write the agent's task into {prompt}, then "


def _accept_agent(
    project: config.Project, name: str, *, is_new_folder: bool, is_added: bool
) -> None:
    """Trust the folder if this command created all of it. Otherwise, accept the new agent."""
    if is_new_folder:
        accept_project(project)
    elif is_added and is_trusted(project.path):
        accept_settings(project, name)


def _is_accepted(folder: Path) -> bool:
    """Return whether there is no manifest yet, or the operator has accepted one of its agents.

    Otherwise, the first `run` prints the new agent's settings and the shared ones, and accepts
    them.
    """
    if not (folder / manifest.MANIFEST_FILE).exists():
        return True
    project = config.load_project(folder)
    return any(not explain_unaccepted(project, name) for name in project.declared_agents)


def _choose_name(folder: Path, agent: str | None, *, yes: bool) -> str:
    return require_agent_name(
        agent or _ask_user("Agent's name", make_agent_name(folder.name), yes=yes)
    )


def add_agent(
    folder: Path, name: str, harness: str | None, *, yes: bool, tools: PermissionLevel | None = None
) -> list[str]:
    """Add an agent to the manifest, and return a line for each change."""
    return _write_manifest(folder, name, *_choose_entry(harness, yes=yes, tools=tools))


def _choose_entry(
    harness: str | None, *, yes: bool, tools: PermissionLevel | None
) -> tuple[str, PermissionLevel]:
    """Return a new agent's CLI and permissions, from the options or by asking the user."""
    chosen = _require_harness(harness or _ask_for_harness(yes=yes))
    if tools and not HARNESSES[chosen].CAN.permits_tools:
        raise UsageError(
            f"--tools has no effect with {chosen}",
            hint="omit it: your program sets its own permissions",
        )
    return chosen, tools or _ask_for_tools(chosen, yes=yes)


def _ask_for_tools(harness: str, *, yes: bool) -> PermissionLevel:
    """Ask for the permission level. Without a terminal, return the default."""
    if yes or not sys.stdin.isatty() or not HARNESSES[harness].CAN.permits_tools:
        return DEFAULT_LEVEL
    levels = ", ".join(f"{name}: {row.words}" for name, row in PERMISSION_LEVELS.items())
    answer = _ask_user(
        f"What may the agent do ({levels})", DEFAULT_LEVEL, yes=yes, choices=PERMISSION_LEVELS
    )
    return cast("PermissionLevel", answer)


def _ask_for_harness(*, yes: bool) -> str:
    """Ask which CLI to use. The default is the first one installed, including CLIs from plugins."""
    installed = [
        candidate.NAME
        for candidate in HARNESSES.working()
        if program_search.find_executable(find_program(candidate))
    ]
    listed = f", installed: {', '.join(installed)}" if installed else ""
    first, *_ = [*installed, *BUILT_IN]
    if yes and not installed:
        echo(f"· no agent CLI is on the PATH: using {first}; --harness chooses another", err=True)
    return _ask_user(f"Harness ({', '.join(HARNESSES)}{listed})", first, yes=yes)


def _require_harness(name: str) -> str:
    chosen = ALIASES.get(name, name)
    if chosen not in HARNESSES:
        raise UsageError(
            f"there is no harness named {to_one_line(chosen)!r}",
            hint=f"use one of: {HARNESSES.list_names()}",
        )
    return chosen


def _write_manifest(
    folder: Path,
    name: str,
    harness: str,
    level: PermissionLevel,
    *,
    until: str | None = None,
    command: str | None = None,
) -> list[str]:
    prompt = AgentDefaults().prompt
    more = render_until_lines(until) if until else _propose_until(folder)
    if command:
        more = (f"command: {yaml_lines.quote_scalar(command)}", *more)
    permits = HARNESSES[harness].CAN.permits_tools
    permissions = make_permissions(level, harness) if permits else None
    persona, words = make_persona_name(level, harness), explain_level(level, harness)
    if permissions:
        more = (f"persona: {persona}", *more)

    def add_entries(text: str) -> str:
        if text.strip() and name in manifest.parse(text).agents:
            return text
        added = (
            manifest_edit.add_agent_entry(text, name, harness, prompt, more)
            if text.strip()
            else manifest_edit.compose(name, harness, prompt, more)
        )
        comment = f"What the agent may do: {words}. {explain_rest(level, harness)}"
        return (
            manifest_edit.add_persona_entry(added, persona, permissions, comment)
            if permissions
            else added
        )

    before, after = config.rewrite_manifest(folder, add_entries)
    if before == after:
        return [f"agent {name} is already in {manifest.MANIFEST_FILE}"]
    did = [
        f"added {name} to {manifest.MANIFEST_FILE}"
        if before.strip()
        else f"wrote {manifest.MANIFEST_FILE}"
    ]
    if permissions:
        did.append(f"it may {render_may(words)}: to change that, edit the persona {persona} there")
    return did


def render_may(words: str) -> str:
    """Return what a level permits, as the end of "it may"."""
    return "only read" if words == PERMISSION_LEVELS["read"].words else words


def _propose_until(folder: Path) -> tuple[str, ...]:
    """Return the manifest lines for `until:`, the command that checks whether the work is done."""
    files = {}
    for name in READ_FILES:
        with suppress(OSError):
            path = folder / name
            if path.is_file() and path.stat().st_size <= RELAY_BYTES:
                files[name] = path.read_text(encoding="utf-8", errors="replace")
    return render_until_lines(propose_until(files))


def _ask_user(question: str, default: str, *, yes: bool, choices: Collection[str] = ()) -> str:
    """Prompt the user, and list the choices if there are any. With `yes`, return the default."""
    if yes:
        return default
    kind = click.Choice(list(choices)) if choices else None
    try:
        answer: str = click.prompt(question, default=default, type=kind, show_choices=False)
    except click.Abort as gone:
        if isinstance(gone.__context__, KeyboardInterrupt):
            echo(err=True)  # End the prompt's line.
            raise
        raise UsageError(
            "the question was not answered", hint="answer it, or use the defaults with --yes"
        ) from gone
    return answer
