"""Check agents before they start. `run`, `up` and `restart` refuse what `doctor` reports.

`CHECKS` and `HOST_CHECKS` list all checks. Each one raises an error to refuse the start.
"""

import os
import shlex
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which

import msgspec

from rekindle.config import Project
from rekindle.documents import manifest
from rekindle.documents.launches.launch_types import LaunchSpec
from rekindle.documents.manifest import (
    DEFAULT_PROMPT,
    Persona,
)
from rekindle.documents.manifest_keys import Compaction
from rekindle.documents.manifest_quota import QuotaKeys
from rekindle.errors import (
    AgentError,
    ManifestError,
    ProgramMissingError,
    RekindleError,
    UnenforceableError,
    UsageError,
    translate_os_errors,
)
from rekindle.formats.identifiers import to_one_line
from rekindle.harnesses import command_harness
from rekindle.plugins import find_program
from rekindle.policy.progress.artefacts import is_artefact
from rekindle.policy.settings.runtime_settings import (
    RELAY_BYTES,
    AgentDefaults,
)
from rekindle.policy.supervision.list_prices import PriceList
from rekindle.stores.folders import agent_folder
from rekindle.system.files import inside_folder
from rekindle.system.processes import program_search
from rekindle.wiring import sandbox_setup
from rekindle.wiring import summarizer_setup as summarizing
from rekindle.wiring.agent_dir_list import find_agent_dir
from rekindle.wiring.agent_environment import (
    make_environment,
)
from rekindle.wiring.agent_routes import (
    check_account_folder,
    check_accounts,
    check_harness_list,
    find_routes,
    with_route,
)
from rekindle.wiring.agent_workspaces import check_workspace, find_workspace
from rekindle.wiring.open_store import (
    find_harness,
    read_named_file,
)
from rekindle.wiring.starting.ask_check import check_ask
from rekindle.wiring.starting.reviewing_agent import with_reviewer

Program = tuple[str, ...]
"""Program that replaces the one in the manifest; empty if there is none."""


def find_obstacles(
    project: Project, name: str, program: Program = (), *, on_this_host: bool = True
) -> Iterator[RekindleError]:
    """Yield each error that would prevent the agent from starting.

    With `on_this_host`, also check that the agent's folder and program are on this host. On later
    routes, only errors in the manifest count, because a program may be installed later.
    """
    messages: set[str] = set()
    later = () if program else find_routes(project, name)[1:]
    for routed in (project, *(with_route(project, name, route) for route in later)):
        for error in _find_errors(routed, name, program, on_this_host=on_this_host):
            counts = routed is project or isinstance(error, ManifestError)
            if counts and str(error) not in messages:  # an unknown harness fails several checks
                yield error
                messages.add(str(error))


def _find_errors(
    project: Project, name: str, program: Program, *, on_this_host: bool
) -> Iterator[RekindleError]:
    for check in (*CHECKS, *HOST_CHECKS) if on_this_host else CHECKS:
        try:
            with translate_os_errors(project.path):
                check(project, name, program)
        except RekindleError as error:
            yield error


def refuse_obstacles(
    project: Project, name: str, program: Program = (), *, on_this_host: bool = True
) -> None:
    """Raise the first error that prevents the agent from starting, if any."""
    for error in find_obstacles(project, name, program, on_this_host=on_this_host):
        raise error


def read_task(project: Project, name: str) -> str:
    """Return the agent's task as text."""
    prompt = project.manifest.agents[name].prompt or AgentDefaults().prompt
    task = read_named_file(project, prompt, "prompt")
    if not task.strip() or task == DEFAULT_PROMPT:
        raise ManifestError(
            "has no task yet",
            file=prompt,
            hint=f"describe in {prompt} what the agent is to do, then repeat the command",
        )
    return task


def read_persona(project: Project, name: str) -> tuple[Persona, str]:
    """Return the agent's persona, with the absolute path of its file, and that file's text."""
    persona_name = project.manifest.agents[name].persona or AgentDefaults().persona
    declared = project.manifest.personas.get(persona_name)
    if declared is None and persona_name != AgentDefaults().persona:
        raise ManifestError(
            f"agent {name}: there is no persona named {persona_name!r}",
            line=project.marked.line(("agents", name, "persona")),
            hint=f"use one of: {', '.join(project.manifest.personas) or 'there is none yet'}",
        )
    persona = declared or Persona()
    if persona.system_prompt_file is None:
        return persona, ""
    words = read_named_file(project, persona.system_prompt_file, "system_prompt_file")
    prompt_path = str((project.path / persona.system_prompt_file).resolve())
    return msgspec.structs.replace(persona, system_prompt_file=prompt_path), words


def find_checkpoint_persona(entry: manifest.AgentEntry) -> str:
    """Return the name of the persona that writes the agent's checkpoints."""
    compaction = entry.handover.compaction if entry.handover else None
    named = compaction.persona if isinstance(compaction, Compaction) else None
    return named or summarizing.PERSONA


def read_program(project: Project, name: str) -> Program:
    """Return the `command:` that replaces the CLI's own program; empty if unset."""
    entry = project.manifest.agents[name]
    if not entry.command and find_harness(project, name).NAME == command_harness.NAME:
        raise ManifestError(
            f"agent {name}: there is no `command:` to start",
            line=project.marked.line(("agents", name, "command")),
            hint=f"add `command: ./your-program` to {name} in rekindle.yaml",
        )
    return tuple(entry.command or ())


def find_prices(project: Project, name: str) -> PriceList:
    """Return the prices with which Rekindle computes a cost that the agent's CLI does not report.

    A program in `command:` has no list prices, because it may not use a paid model at all.
    """
    harness = find_harness(project, name)
    return PriceList(project.manifest.prices, has_list_prices=harness.NAME != command_harness.NAME)


def _check_harness(project: Project, name: str, _: Program) -> None:
    find_harness(project, name)


def _check_command(project: Project, name: str, program: Program) -> None:
    if not program:
        read_program(project, name)


def _check_task(project: Project, name: str, _: Program) -> None:
    read_task(project, name)


def _check_rules(project: Project, name: str, _: Program) -> None:
    read_named_file(project, project.manifest.agents[name].rules, "rules")


def _check_persona(project: Project, name: str, _: Program) -> None:
    read_persona(project, name)


def _check_environment(project: Project, name: str, _: Program) -> None:
    make_environment(project, name)


def _check_summarizers(project: Project, name: str, _: Program) -> None:
    own = find_checkpoint_persona(project.manifest.agents[name])
    for role in dict.fromkeys((summarizing.PERSONA, own)):
        summarizing.check_summarizer(project, name, role)


def _check_prices(project: Project, name: str, _: Program) -> None:
    """Refuse caps in dollars if costs are unknown."""
    entry, harness = project.manifest.agents[name], find_harness(project, name)
    stays = entry.mode == "stay"
    quota = project.manifest.quota or QuotaKeys()
    caps = {
        ("agents", name, "budget"): entry.budget,
        ("quota", "per_day"): quota.per_day,
        ("quota", "per_month"): quota.per_month,
    }
    capped = [path for path, cap in caps.items() if cap is not None and cap.usd is not None]
    tells = harness.CAN.reports_money and not stays
    prices = find_prices(project, name) if harness.CAN.reports_tokens else project.manifest.prices
    if capped and not tells and not prices:
        where = " in a terminal" if stays else ""
        raise ManifestError(
            f"agent {name}: {harness.NAME} does not report its costs{where}, and `prices:` is "
            "empty",
            line=project.marked.line(capped[0]),
            hint="add `prices: {default: {input: …, output: …}}`, in dollars per million tokens,"
            " or limit `tokens:` instead",
        )


def _check_permissions(project: Project, name: str, program: Program) -> None:
    """Refuse permissions that the CLI cannot enforce."""
    harness, (persona, words) = find_harness(project, name), read_persona(project, name)
    is_in_terminal = project.manifest.agents[name].mode == "stay" and not harness.CAN.terminal
    start = LaunchSpec(
        interactive=is_in_terminal,
        session=str(uuid.uuid4()) if harness.CAN.names_sessions else "",
        persona=persona,
        instructions=words,
        folder=str(find_agent_dir(project, name)),
        program=program or read_program(project, name),
    )
    try:
        harness.command(start)
    except (UsageError, UnenforceableError) as error:
        reason = error.message if isinstance(error, ManifestError) else error
        named = project.manifest.agents[name].persona or AgentDefaults().persona
        raise ManifestError(
            f"agent {name}: {reason}",
            line=project.marked.line(("personas", named, "permissions")),
            hint=error.hint,
        ) from error
    check_ask(project, name, harness.CAN.gate, persona)


def _check_relay(project: Project, name: str, _: Program) -> None:
    """Refuse a relay file outside the project, or one that would count as work."""
    file = project.manifest.agents[name].relay
    if file is None:
        return
    parts = Path(file).parts
    if not parts or Path(file).is_absolute() or ".." in parts or "\0" in file:
        problem = "is not a path inside the project"
    elif not {agent_folder.REKINDLE_FOLDER, ".git"}.isdisjoint(parts):
        problem = "is in the .rekindle or .git folder"
    elif is_artefact(file):
        problem = "would count as the agent's work, because its name is not that of a relay"
    else:
        inside_folder.read(project.path, file, RELAY_BYTES)
        return
    raise ManifestError(
        f"agent {name}: `relay: {to_one_line(file)}` {problem}",
        line=project.marked.line(("agents", name, "relay")),
        hint="use a file in the project named consensus.md, relay.md or progress.md",
    )


def _check_review(project: Project, name: str, _: Program) -> None:
    reviewing = with_reviewer(project, name)
    if reviewing is not None:
        for check in (_check_harness, _check_command, _check_persona, _check_permissions):
            check(reviewing, name, ())


def _check_reviewer_program(project: Project, name: str, _: Program) -> None:
    reviewing = with_reviewer(project, name)
    if reviewing is not None:
        _check_program(reviewing, name, ())


def _find_program_folder(project: Project, name: str) -> Path:
    """Return the agent's folder, in the user's checkout if its own does not exist yet."""
    folder = find_agent_dir(project, name)
    if folder.is_dir() or find_workspace(project, name) is None:
        return folder
    return (project.path / (project.manifest.agents[name].dir or AgentDefaults().dir)).resolve()


def _check_workspace(project: Project, name: str, _: Program) -> None:
    check_workspace(project, name)


def _check_folder(project: Project, name: str, _: Program) -> None:
    folder = _find_program_folder(project, name)
    if not folder.is_dir():
        raise AgentError(
            f"the agent's folder {folder} does not exist", hint="correct `dir:` in rekindle.yaml"
        )


def _check_program(project: Project, name: str, program: Program) -> None:
    """Refuse a program that would not be found at launch."""
    harness, folder = find_harness(project, name), _find_program_folder(project, name)
    own = program or read_program(project, name)
    word = own[0] if own else find_program(harness)
    path = make_environment(project, name).variables.get("PATH")
    if word and not own and "/" not in word:
        (word, *_) = program_search.resolve_command((word,), path)
    if word and not _can_start(word, folder, path):
        hint = command_harness.INSTALL if own else harness.INSTALL
        reason = "it is not installed"
        if "/" in word:
            reason = "the file does not exist"
            if (folder / word).is_file():
                reason, hint = "it is not executable", _render_chmod_hint(word)
        raise ProgramMissingError(word, reason, hint=hint)


def _check_sandbox(project: Project, name: str, _: Program) -> None:
    sandbox_setup.check_sandbox(project, name)


def _check_until(project: Project, name: str, _: Program) -> None:
    words = project.manifest.agents[name].until or []
    check_command(project, name, words, f"agent {name}", ("agents", name, "until"))


def check_command(
    project: Project, name: str, words: list[str], owner: str, path: tuple[str | int, ...]
) -> None:
    """Refuse a command whose program would not be found. `path` is its place in rekindle.yaml.

    A file in the agent's folder may be missing, because the agent may still have to build it.
    """
    folder, key = _find_program_folder(project, name), path[-1]
    search_path = make_environment(project, name).variables.get("PATH")
    if not words or _can_start(words[0], folder, search_path):
        return
    program = words[0]
    is_line = len(words) == 1 and len(program.split()) > 1
    is_relative = "/" in program and not Path(program).is_absolute()
    is_there = is_relative and (folder / program).exists()
    if is_relative and not is_there and not is_line:
        return
    if is_line:
        hint = f"write each word as an item of the list: `{key}: {_render_list(program.split())}`"
    elif is_there:
        hint = _render_chmod_hint(program)
    else:
        hint = f"install it, or correct `{key}:` in rekindle.yaml"
    raise ManifestError(
        f"{owner}: the program of `{key}:` "
        f"{'cannot be run' if is_there else 'was not found'}: {to_one_line(program)}",
        line=project.marked.line(path),
        hint=hint,
    )


def _render_chmod_hint(program: str) -> str:
    return f"make it executable: `chmod +x {shlex.quote(program)}`"


def _render_list(words: list[str]) -> str:
    return f"[{', '.join(msgspec.json.encode(word).decode() for word in words)}]"


def _can_start(word: str, folder: Path, path: str | None) -> bool:
    if "/" not in word:
        return which(word, path=path) is not None
    file = folder / word
    return file.is_file() and os.access(file, os.X_OK)


Check = Callable[[Project, str, Program], None]

CHECKS: tuple[Check, ...] = (
    _check_harness,
    check_harness_list,
    _check_command,
    _check_task,
    _check_rules,
    _check_relay,
    _check_persona,
    _check_environment,
    _check_summarizers,
    _check_prices,
    _check_permissions,
    _check_review,
    check_accounts,
)
HOST_CHECKS: tuple[Check, ...] = (
    _check_workspace,
    _check_folder,
    _check_sandbox,
    check_account_folder,
    _check_program,
    _check_reviewer_program,
    _check_until,
)
