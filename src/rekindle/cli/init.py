"""`rekindle init`."""

import sys
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import cast

import click

from rekindle import config
from rekindle.cli.options import as_json, here, print_note
from rekindle.cli.output import echo, print_json
from rekindle.cli.trust import trust_if_new
from rekindle.documents import manifest
from rekindle.documents.identity import agent_name, one_line, slug
from rekindle.errors import UsageError, storing
from rekindle.plugins import ALIASES, BUILT_IN, find_program
from rekindle.policy.permissions import (
    DEFAULT_LEVEL,
    LEVELS,
    Level,
    explain_level,
    explain_rest,
    permissions_of,
    persona_of,
)
from rekindle.policy.propose_until import NAMES, manifest_lines, propose_until
from rekindle.policy.settings import RELAY_BYTES, AgentDefaults
from rekindle.stores.files.layout import Root
from rekindle.system import disk, programs
from rekindle.wiring.caller import refuse_agent_of
from rekindle.wiring.store import HARNESSES, open_store
from rekindle.wiring.trust import accept_settings, explain_unaccepted


@click.command()
@click.option("--agent", metavar="NAME", help="The agent's name. Default: the folder's name.")
@click.option(
    "--harness", metavar="NAME", help=f"Its CLI: {', '.join(BUILT_IN)}, or a plugin's name."
)
@click.option(
    "--tools",
    type=click.Choice(list(LEVELS)),
    help="What the agent may do: read only; edit this folder; edit and run commands. Without a"
    f" terminal or with --yes: {DEFAULT_LEVEL}.",
)
@click.option("--yes", is_flag=True, help="Take the defaults; never ask.")
@as_json
def init(
    agent: str | None, harness: str | None, tools: Level | None, yes: bool, as_json: bool
) -> None:
    """Set an agent up in this folder.

    Writes rekindle.yaml (a few lines; every other key has a default), the agent's folder below
    .rekindle, and PROMPT.md where there is none. `until:` is the command that tests the project, if
    its files name one. Run it again with --agent to add another agent.
    """
    folder = config.find(here()) or here()
    trusted = trust_if_new(folder)
    known = config.agents_of(folder)
    accepts = trusted and _is_accepted(folder)
    if accepts:
        refuse_agent_of(folder, known, "rekindle init")
    is_there = bool(known) and agent is None
    name = known[0] if is_there else _name(folder, agent, yes=yes)
    if tools and name in known:
        raise UsageError(
            f"--tools is for a new agent, and {name} is in {manifest.FILE} already",
            hint=f"change its persona in {manifest.FILE}",
        )
    if is_there:
        did = [f"{manifest.FILE} is there already, with {', '.join(known)}"]
    else:
        did = add_agent(folder, name, harness, yes=yes, tools=tools)
    did += write_prompt(folder)
    write_summarizer(folder)
    project = config.load(folder)
    stands = project.manifest.agents[name].harness
    store = open_store(project, say=print_note)
    is_new = not store.exists(name)
    store.create(name)
    if accepts and name not in known:
        accept_settings(project, name)
    if is_new:
        did.append(f"made {store.folder(name).path.relative_to(folder)}")
    if as_json:
        print_json({"agent": name, "harness": stands, "folder": one_line(str(folder)), "did": did})
        return
    for line in did:
        echo(f"✓ {line}")
    if stands == "command" and not project.manifest.agents[name].command:
        echo(f'Next: add `command: ["./your-program"]` to {name} in {manifest.FILE}.')
    if not trusted:
        echo("· this folder came with a manifest: the first `rekindle run` asks for trust")
    echo(f"Next: say in {AgentDefaults().prompt} what it is to do, then `rekindle run {name}`.")


def _is_accepted(folder: Path) -> bool:
    """Return whether a manifest holds nothing yet that the operator would have to look at.

    Otherwise the first `run` accepts the new agent, and prints its settings with the shared ones.
    """
    if not (folder / manifest.FILE).exists():
        return True
    project = config.load(folder)
    return any(not explain_unaccepted(project, name) for name in project.manifest.agents)


def _name(folder: Path, agent: str | None, *, yes: bool) -> str:
    return agent_name(agent or _ask("Agent's name", default_name(folder), yes=yes))


def add_agent(
    folder: Path, name: str, harness: str | None, *, yes: bool, tools: Level | None = None
) -> list[str]:
    """Add an agent to the manifest, and return what was done."""
    chosen = _harness(harness or _ask_for_harness(yes=yes))
    if tools and permissions_of(tools, chosen) is None:
        raise UsageError(
            f"--tools has no effect with {chosen}", hint="leave it out: your program decides itself"
        )
    return _manifest(folder, name, chosen, tools or _ask_for_tools(chosen, yes=yes))


def _ask_for_tools(harness: str, *, yes: bool) -> Level:
    """Return the level of permissions: as answered on a terminal, else the default."""
    if yes or not sys.stdin.isatty() or permissions_of(DEFAULT_LEVEL, harness) is None:
        return DEFAULT_LEVEL
    levels = ", ".join(f"{name}: {row.words}" for name, row in LEVELS.items())
    answer = _ask(f"What may it do ({levels})", DEFAULT_LEVEL, yes=yes, choices=LEVELS)
    return cast("Level", answer)


def _ask_for_harness(*, yes: bool) -> str:
    """What is installed comes first, and is offered; a plugin's CLI as well as ours."""
    found = [one.NAME for one in HARNESSES.working() if programs.find(find_program(one))]
    there = f", installed: {', '.join(found)}" if found else ""
    first, *_ = [*found, *BUILT_IN]
    if yes and not found:
        echo(
            f"· no agent CLI was found on the PATH: {first} is assumed, or say --harness", err=True
        )
    return _ask(f"Harness ({', '.join(HARNESSES)}{there})", first, yes=yes)


def _harness(name: str) -> str:
    chosen = ALIASES.get(name, name)
    if chosen not in HARNESSES:
        raise UsageError(
            f"there is no harness named {one_line(chosen)!r}",
            hint=f"one of: {', '.join(HARNESSES)}",
        )
    return chosen


def _manifest(folder: Path, name: str, harness: str, level: Level) -> list[str]:
    prompt, more = AgentDefaults().prompt, _propose_until(folder)
    permissions = permissions_of(level, harness)
    persona, words = persona_of(level, harness), explain_level(level, harness)
    if permissions:
        more = (f"persona: {persona}", *more)

    def changed(text: str) -> str:
        if text.strip() and name in manifest.parse(text).agents:
            return text
        added = (
            manifest.with_agent(text, name, harness, prompt, more)
            if text.strip()
            else manifest.compose(name, harness, prompt, more)
        )
        comment = f"What the agent may do: {words}. {explain_rest(level, harness)}"
        return manifest.with_persona(added, persona, permissions, comment) if permissions else added

    before, after = config.rewrite(folder, changed)
    if before == after:
        return [f"agent {name} is in {manifest.FILE} already"]
    did = [f"added {name} to {manifest.FILE}" if before.strip() else f"wrote {manifest.FILE}"]
    if permissions:
        did.append(f"it may {_may(words)}: change persona {persona} there")
    return did


def _may(words: str) -> str:
    return "only read" if words == LEVELS["read"].words else words


def _propose_until(folder: Path) -> tuple[str, ...]:
    """Return the lines of the manifest that verify the end of the work."""
    files = {}
    for name in NAMES:
        with suppress(OSError):
            path = folder / name
            if path.is_file() and path.stat().st_size <= RELAY_BYTES:
                files[name] = path.read_text(encoding="utf-8", errors="replace")
    return manifest_lines(propose_until(files))


def write_prompt(folder: Path) -> list[str]:
    """A task to fill in, where there is none; what stands there, a link too, is left alone."""
    path = folder / AgentDefaults().prompt
    with storing(path):
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(manifest.PROMPT)
        except FileExistsError:
            return []
    return [f"wrote {path.name}: say there what the agent is to do"]


def write_summarizer(folder: Path) -> None:
    """How checkpoints, relays and briefs are to be summarized; a person's own words stay."""
    root = Root(folder)
    root.make()
    path = root.summarizer
    disk.make_folder(path.parent)
    if not disk.exists(path):
        disk.replace(path, manifest.SUMMARIZER.encode())


def default_name(folder: Path) -> str:
    return slug(folder.name)[:40] if folder.name else "agent"


def _ask(question: str, default: str, *, yes: bool, choices: Collection[str] = ()) -> str:
    """Return a person's answer, one of the choices if there are any; with `yes` the default."""
    if yes:
        return default
    kind = click.Choice(list(choices)) if choices else None
    try:
        answer: str = click.prompt(question, default=default, type=kind, show_choices=False)
    except click.Abort as gone:
        if isinstance(gone.__context__, KeyboardInterrupt):
            echo(err=True)  # the question's line is still open
            raise
        raise UsageError(
            "no answer", hint="answer the question, or take the defaults with --yes"
        ) from gone
    return answer
