"""`rekindle init`."""

from pathlib import Path

import click

from rekindle import config, wiring
from rekindle.cli.options import as_json, print_json
from rekindle.documents import manifest
from rekindle.documents.identity import AGENT_NAME, agent_name, slug
from rekindle.errors import UsageError, storing
from rekindle.policy.settings import AgentDefaults

HARNESSES = ("claude-code", "codex", "gemini", "command")
_ALIASES = {"claude": "claude-code"}
_PROMPT = """\
# Task

Say here, in a few sentences, what the agent is to do in every cycle, and how it can tell
that it is done.
"""


@click.command()
@click.option("--agent", metavar="NAME", help="The agent's name. Default: the folder's name.")
@click.option(
    "--harness", metavar="NAME", help=f"Its CLI: {', '.join(HARNESSES)}, or a plugin's name."
)
@click.option("--yes", is_flag=True, help="Take the defaults; never ask.")
@as_json
def init(agent: str | None, harness: str | None, yes: bool, as_json: bool) -> None:
    """Set an agent up in this folder.

    Writes rekindle.yaml (five lines; every other key has a default), the agent's folder below
    .rekindle, and PROMPT.md where there is none. Run it again with --agent to add another agent.
    """
    here = Path.cwd()
    folder = config.find(here) or here
    prompt = AgentDefaults().prompt
    name = agent_name(agent or _ask("Agent's name", _default_name(folder), yes=yes))
    chosen = harness or _ask(f"Harness ({', '.join(HARNESSES)})", HARNESSES[0], yes=yes)
    chosen = _ALIASES.get(chosen, chosen)
    if not AGENT_NAME.match(chosen):
        raise UsageError(
            f"{chosen!r} cannot be a harness's name", hint=f"one of: {', '.join(HARNESSES)}"
        )
    did = [_manifest(folder, name, chosen, prompt)]
    if not (folder / prompt).exists():
        with storing(folder / prompt):
            (folder / prompt).write_text(_PROMPT, encoding="utf-8")
        did.append(f"wrote {prompt}: say there what the agent is to do")
    store = wiring.open_store(config.load(folder))
    store.create(name)
    did.append(f"made {store.folder(name).path.relative_to(folder)}")
    if as_json:
        print_json({"agent": name, "harness": chosen, "folder": str(folder), "did": did})
        return
    for line in did:
        click.echo(f"✓ {line}")
    if chosen == "command":
        click.echo(f'Next: add `command: ["./your-program"]` to {name} in {manifest.FILE}.')
    click.echo("Next: `rekindle status` shows the agent, `rekindle doctor` what is missing.")


def _manifest(folder: Path, name: str, harness: str, prompt: str) -> str:
    if not (folder / manifest.FILE).exists():
        config.write_new(folder, manifest.compose(name, harness, prompt))
        return f"wrote {manifest.FILE}"
    text = config.read_text(folder)
    if name in manifest.parse(text).agents:
        return f"agent {name} stands in {manifest.FILE} already"
    config.write_new(folder, manifest.with_agent(text, name, harness, prompt))
    return f"added {name} to {manifest.FILE}"


def _default_name(folder: Path) -> str:
    return slug(folder.name)[:40] if folder.name else "agent"


def _ask(question: str, default: str, *, yes: bool) -> str:
    if yes:
        return default
    try:
        answer: str = click.prompt(question, default=default)
    except click.Abort as gone:
        raise UsageError(
            "no answer", hint="answer the question, or take the defaults with --yes"
        ) from gone
    return answer
