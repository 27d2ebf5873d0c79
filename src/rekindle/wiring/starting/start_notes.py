"""Find settings that are allowed, but may not be what the user wants."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from rekindle.config import Project
from rekindle.documents.command_line import find_unexpanded
from rekindle.documents.manifest import Permissions
from rekindle.errors import RekindleError
from rekindle.formats.identifiers import to_one_line
from rekindle.harnesses import command_harness
from rekindle.harnesses.acp.acp_presets import PRESETS
from rekindle.plugins import ALIASES
from rekindle.policy.routes.list_routes import list_accounts, list_routes
from rekindle.policy.settings.runtime_settings import AgentDefaults
from rekindle.policy.setup.permissions import explain_reach
from rekindle.wiring import sandbox_setup
from rekindle.wiring import summarizer_setup as summarizing
from rekindle.wiring.agent_dir_list import find_agent_dir
from rekindle.wiring.agent_routes import find_routes
from rekindle.wiring.open_store import HARNESSES, find_harness
from rekindle.wiring.starting.start_checks import find_checkpoint_persona, read_persona

IGNORED_CPU = (
    "`cpu:` of the sandbox has no effect here, because no cgroup v2 with a CPU controller is "
    "delegated to this process"
)
IGNORED_CPU_HINT = (
    "let the service start the agent (`rekindle service install`, systemd 254 or later), or remove "
    "`cpu:`"
)


class StartNote(NamedTuple):
    """A note about an agent for `run` and `doctor`, with a remedy."""

    words: str
    hint: str


def find_notes(project: Project, name: str) -> Iterator[StartNote]:
    """Yield notes about the agent's commands, its routes and its sandbox."""
    yield from _find_literal_words(project, name)
    yield from _find_unused_accounts(project, name)
    yield from _find_shared_model(project, name)
    yield from _find_missing_until(project, name)
    yield from _find_open_calls(project, name)
    if sandbox_setup.ignores_cpu(project, name):
        yield StartNote(IGNORED_CPU, IGNORED_CPU_HINT)


def _find_literal_words(project: Project, name: str) -> Iterator[StartNote]:
    """Yield a note if a command contains a word that a shell would expand."""
    for key in ("command", "until"):
        line = project.marked.command_lines.get(("agents", name, key), "")
        if word := find_unexpanded(line):
            script = msgspec.json.encode(line.strip()).decode()
            yield StartNote(
                f"`{key}:` is not run by a shell, so its program gets `{to_one_line(word)}` "
                "literally",
                f"write `{key}: [sh, -c, {script}]`, or quote the word: '{to_one_line(word)}'",
            )


def _find_unused_accounts(project: Project, name: str) -> Iterator[StartNote]:
    """Yield a note for accounts that need `switch: true`."""
    entry = project.manifest.agents[name]
    if project.settings.runtime.accounts.switch or name in project.workers:
        return
    used = find_routes(project, name)
    for harness in dict.fromkeys(route.harness for route in used):
        if unused := list_accounts(project.manifest, entry, harness, ALIASES)[1:]:
            yield StartNote(
                f"of its accounts of {harness}, only the first is used, not {', '.join(unused)}",
                "write `runtime: {accounts: {switch: true}}` to switch between them; read first "
                "what your plans allow",
            )


def _find_shared_model(project: Project, name: str) -> Iterator[StartNote]:
    """Yield a note if several CLIs would get the same model name."""
    plans = list_routes(project.manifest, name, ALIASES, switches=False)
    users: dict[str, list[str]] = {}
    for plan in plans:
        role = plan.entry.persona or AgentDefaults().persona
        users.setdefault(role, []).append(plan.route.harness)
    for role, harnesses in users.items():
        persona = project.manifest.personas.get(role)
        if persona is not None and persona.model and len(harnesses) > 1:
            yield StartNote(
                f"persona {role}: {', '.join(harnesses)} all get the model {persona.model}, but "
                "CLIs name their models differently",
                f"give the others a persona of their own: `{{use: {harnesses[1]}, persona: NAME}}`",
            )


def _find_missing_until(project: Project, name: str) -> Iterator[StartNote]:
    """Yield a note if the `until:` program is missing. The agent may still have to write it."""
    words = project.manifest.agents[name].until
    program = words[0] if words else ""
    if "/" not in program or Path(program).is_absolute() or len(program.split()) > 1:
        return
    if not (find_agent_dir(project, name) / program).exists():
        yield StartNote(
            f"the program of `until:` does not exist: {to_one_line(program)}",
            "correct `until:` in rekindle.yaml, unless the agent will write that file: until it "
            "exists, no cycle ends the run",
        )


def _find_open_calls(project: Project, name: str) -> Iterator[StartNote]:
    """Yield a note if no persona decides about the calls of an agent that could be made to ask."""
    try:
        harness, (persona, _) = find_harness(project, name), read_persona(project, name)
    except RekindleError:
        return
    preset, permissions = PRESETS.get(harness.NAME), persona.permissions
    if not preset or not preset.asks or (permissions and permissions.allowed_tools is not None):
        return
    if preset.ask_environment and permissions is None:
        yield StartNote(
            f"no persona limits the agent: {preset.title} runs commands and writes files without "
            "asking, unless its own settings forbid it",
            f"{REACH_HINT}, or use a sandbox",
        )
    else:
        yield StartNote(
            "no persona permits the agent any tool: it waits for your answer before it writes a "
            "file or runs a command",
            f"{REACH_HINT}, or answer with `rekindle approve`",
        )


REACH_HINT = (
    "give the agent a persona with"
    " `permissions: {allowed_tools: [Read, Grep, Glob, Edit, Write, Bash]}` in rekindle.yaml"
)


def explain_reach_of(project: Project, name: str) -> tuple[str, bool]:
    """Return a warning if the agent may not write, and whether it cannot do anything at all.

    The warning is empty if the agent may write, or if its own program decides that.
    """
    try:
        harness, (persona, _) = find_harness(project, name), read_persona(project, name)
    except RekindleError:
        return "", False
    entry = project.manifest.agents[name]
    # A wrapper may allow more. In a terminal, the CLI asks the user.
    if entry.command or entry.mode == "stay" or not harness.CAN.permits_tools:
        return "", False
    if harness.CAN.asks and (persona.permissions or Permissions()).allowed_tools is None:
        return "", False  # `find_notes` tells what the agent does
    return explain_reach(persona, entry.persona or AgentDefaults().persona, harness.NAME)


def find_unhonoured(project: Project, name: str) -> list[str]:
    """Return a line for each setting of the agent or its personas that its CLI ignores.

    A persona that would run with a `command:` program is left out, because that is refused.
    """
    entry, personas = project.manifest.agents[name], project.manifest.personas
    own = entry.persona or AgentDefaults().persona
    launched = (own, entry.review)
    lines = []
    for role in dict.fromkeys((*launched, summarizing.PERSONA, find_checkpoint_persona(entry))):
        persona = personas.get(role) if role else None
        named = entry.harness if role == own else (persona and persona.adapter) or entry.harness
        harness = HARNESSES.get(named)
        if (
            persona is None
            or harness is None
            or (role in launched and harness.NAME == command_harness.NAME)
        ):
            continue
        keys = (
            ("model", persona.model, harness.CAN.model),
            ("temperature", persona.temperature, harness.CAN.temperature),
        )
        lines += [
            f"persona {role}: `{key}:` has no effect: {harness.NAME} has no option for it"
            for key, value, is_honoured in keys
            if value is not None and not is_honoured
        ]
    if entry.harness == command_harness.NAME and entry.handover and entry.handover.compaction:
        lines.append(
            f"agent {name}: `handover:` has no effect: {command_harness.NAME} cannot be stopped "
            "between two"
            " turns"
        )
    return lines


UNHONOURED_HINT = "remove the key, or set it in the CLI's own settings"
