"""`rekindle init`."""

from contextlib import suppress
from pathlib import Path

import click

from rekindle import config
from rekindle.cli.options import as_json, here, print_note
from rekindle.cli.output import echo, print_json
from rekindle.cli.trust import trust_if_new
from rekindle.documents import manifest
from rekindle.documents.identity import agent_name, one_line, slug
from rekindle.errors import UsageError, storing
from rekindle.plugins import ALIASES, BUILT_IN, find_program
from rekindle.policy.propose_until import NAMES, manifest_lines, propose_until
from rekindle.policy.settings import RELAY_BYTES, AgentDefaults
from rekindle.stores.files.layout import Root
from rekindle.system import disk, programs
from rekindle.wiring.store import HARNESSES, open_store


@click.command()
@click.option("--agent", metavar="NAME", help="The agent's name. Default: the folder's name.")
@click.option(
    "--harness", metavar="NAME", help=f"Its CLI: {', '.join(BUILT_IN)}, or a plugin's name."
)
@click.option("--yes", is_flag=True, help="Take the defaults; never ask.")
@as_json
def init(agent: str | None, harness: str | None, yes: bool, as_json: bool) -> None:
    """Set an agent up in this folder.

    Writes rekindle.yaml (a few lines; every other key has a default), the agent's folder below
    .rekindle, and PROMPT.md where there is none. `until:` is the command that tests the project, if
    its files name one. Run it again with --agent to add another agent.
    """
    folder = config.find(here()) or here()
    trusted = trust_if_new(folder)
    known = config.agents_of(folder)
    if known and agent is None:
        name = known[0]
        did = [f"{manifest.FILE} is there already, with {', '.join(known)}"]
    else:
        name = agent_name(agent or _ask("Agent's name", default_name(folder), yes=yes))
        did = [add_agent(folder, name, harness, yes=yes)]
    did += write_prompt(folder)
    write_summarizer(folder)
    project = config.load(folder)
    stands = project.manifest.agents[name].harness
    store = open_store(project, say=print_note)
    is_new = not store.exists(name)
    store.create(name)
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


def add_agent(folder: Path, name: str, harness: str | None, *, yes: bool) -> str:
    """Have the manifest name an agent, and say what was done."""
    return _manifest(folder, name, _harness(harness or _ask_for_harness(yes=yes)))


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


def _manifest(folder: Path, name: str, harness: str) -> str:
    prompt, more = AgentDefaults().prompt, _propose_until(folder)

    def changed(text: str) -> str:
        if not text.strip():
            return manifest.compose(name, harness, prompt, more)
        if name in manifest.parse(text).agents:
            return text
        return manifest.with_agent(text, name, harness, prompt, more)

    before, after = config.rewrite(folder, changed)
    if before == after:
        return f"agent {name} stands in {manifest.FILE} already"
    return f"added {name} to {manifest.FILE}" if before.strip() else f"wrote {manifest.FILE}"


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


def _ask(question: str, default: str, *, yes: bool) -> str:
    if yes:
        return default
    try:
        answer: str = click.prompt(question, default=default)
    except click.Abort as gone:
        if isinstance(gone.__context__, KeyboardInterrupt):
            echo(err=True)  # the question's line is still open
            raise
        raise UsageError(
            "no answer", hint="answer the question, or take the defaults with --yes"
        ) from gone
    return answer
