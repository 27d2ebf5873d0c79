"""Build an agent's summarizer, and collect facts that do not need a model."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from rekindle.config import Project
from rekindle.documents import checkpoint, relay
from rekindle.documents.checkpoint import CheckpointSection
from rekindle.documents.manifest import Persona
from rekindle.documents.relay import RelayField
from rekindle.documents.summaries.summary import list_carried_items
from rekindle.errors import DocumentError, ManifestError, RekindleError, UsageError
from rekindle.flows.transcripts.summarize_turns import Summarizer
from rekindle.formats.identifiers import to_one_line
from rekindle.harnesses import command_harness
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.projection import Projection
from rekindle.policy.settings.runtime_settings import AgentDefaults
from rekindle.policy.settings.used_personas import SUMMARIZER_PERSONA
from rekindle.policy.setup import environment
from rekindle.ports import Harness
from rekindle.stores.files import FileStore
from rekindle.stores.folders import private_files
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.summarizers.headless_cli import HeadlessSummarizer
from rekindle.summarizers.mechanical_summary import KnownWork
from rekindle.system import clock
from rekindle.system.files import durable_files
from rekindle.system.git.work_status import GitStatus
from rekindle.system.processes import program_search
from rekindle.system.processes.child_processes import HostProcesses
from rekindle.thresholds.texts import QUOTED_CHARACTERS
from rekindle.wiring.agent_dir_list import find_agent_dir
from rekindle.wiring.agent_environment import locate_words
from rekindle.wiring.agent_routes import select_account
from rekindle.wiring.credential_setup import drop_host_credentials
from rekindle.wiring.open_store import (
    HARNESSES,
    read_named_file,
)

PERSONA = SUMMARIZER_PERSONA


def make_summarizer(
    project: Project,
    store: FileStore,
    name: str,
    role: str = PERSONA,
    *,
    stops: Callable[[], bool] = bool,
) -> Summarizer:
    """Return an agent's summarizer. It stops waiting for an answer if `stops` returns True."""
    cap = project.settings.runtime.relay.summarizer_max_input_tokens
    headless = make_headless(project, store, name, os.environ, role, stops=stops)
    return (
        Summarizer(headless.ask, cap=cap, words=headless.words)
        if headless
        else Summarizer(None, cap=cap)
    )


def make_headless(
    project: Project,
    store: FileStore,
    name: str,
    environ: Mapping[str, str],
    role: str = PERSONA,
    *,
    stops: Callable[[], bool] = bool,
) -> HeadlessSummarizer | None:
    """Return the CLI that writes an agent's summaries: the one in `personas:`, or the agent's.

    Return None if no CLI is suitable: an unknown program might do anything with a question, and
    some CLIs answer only within a session.
    """
    persona, harness = _find_summarizer(project, name, role)
    settings, entry = project.settings.runtime.relay, project.manifest.agents[name]
    is_unknown = harness.NAME == command_harness.NAME and not persona.command
    if settings.summarizer == "mechanical" or is_unknown or not harness.CAN.questions:
        return None
    # For the same CLI, the agent's `command:` replaces its program here too.
    own = (entry.command or ()) if entry.harness == (persona.adapter or entry.harness) else ()
    if project.floor is not None and (persona.command or own):
        return None  # it runs outside the sandbox, so a host uses only CLIs that it has itself
    passed = environment.select_variables(
        environ, harness.PASSED_PREFIXES, harness.BLOCKED_VARIABLES
    )
    passed = drop_host_credentials(project, harness, passed)
    passed = select_account(project, name, harness, passed)
    if "PATH" in passed and harness.NAME != command_harness.NAME:
        # A summary needs only the CLI itself, so the project's programs come last.
        passed["PATH"] = program_search.order_path(passed["PATH"])
    return HeadlessSummarizer(
        harness=harness,
        processes=HostProcesses(),
        scratch=_find_scratch(project, store, name),
        environment=passed,
        program=locate_words(project, name, persona.command or own),
        persona=persona,
        words=_read_words(project, persona),
        usd=settings.summarizer_max_usd,
        stops=stops,
    )


def check_summarizer(project: Project, name: str, role: str = PERSONA) -> None:
    """Refuse an unusable summarizer before the work starts.

    Raises:
        ManifestError: The persona or its adapter does not exist, or a file cannot be read.
    """
    persona, _ = _find_summarizer(project, name, role)
    if project.settings.runtime.relay.summarizer != "mechanical":
        _read_words(project, persona)


def _find_summarizer(project: Project, name: str, role: str) -> tuple[Persona, Harness]:
    declared = project.manifest.personas.get(role)
    if declared is None and role != PERSONA:
        raise ManifestError(
            f"agent {name}: there is no persona named {role!r}",
            line=project.marked.line(("agents", name, "handover", "compaction", "persona")),
            hint=f"use one of: {', '.join(project.manifest.personas) or 'there is none yet'}",
        )
    persona = declared or Persona()
    harness = persona.adapter or project.manifest.agents[name].harness
    if harness not in HARNESSES:
        raise ManifestError(
            f"the summarizer's adapter {harness!r} does not exist",
            line=project.marked.line(("personas", role, "adapter")),
            hint=f"use one of: {', '.join(HARNESSES)}",
        )
    if persona.adapter and not HARNESSES[harness].CAN.questions:
        raise ManifestError(
            f"the summarizer's adapter {harness!r} cannot write summaries",
            line=project.marked.line(("personas", role, "adapter")),
            hint="choose another adapter, or set `runtime: {relay: {summarizer: mechanical}}`",
        )
    return persona, HARNESSES[harness]


def read_task_text(project: Project, name: str) -> str:
    """Return the agent's task as text, or "" if it cannot be read."""
    prompt = project.manifest.agents[name].prompt or AgentDefaults().prompt
    with suppress(RekindleError):
        return read_named_file(project, prompt, "prompt").strip()
    return ""


def _read_words(project: Project, persona: Persona) -> str:
    """Return the instructions in the persona's file, or the default ones."""
    if persona.system_prompt_file:
        return read_named_file(project, persona.system_prompt_file, "system_prompt_file")
    return (durable_files.read_bytes(RekindleFolder(project.path).summarizer) or b"").decode(
        "utf-8", "replace"
    )


def _find_scratch(project: Project, store: FileStore, name: str) -> Path:
    """Return the folder in which the CLI runs. Agents cannot put CLI settings there."""
    store.create(name)
    return private_files.find_private_project(project.path).make_agent(name).asked


def find_commit(project: Project, name: str, since: str) -> str:
    """Return the full id of the commit `since`, or "" if none was given.

    Raises:
        UsageError: Git does not know the commit.
    """
    commit = open_git_status(project, name).commit(since) if since else ""
    if since and not commit:
        raise UsageError(
            f"git has no commit {to_one_line(since, QUOTED_CHARACTERS)!r}",
            hint="`git log --oneline` lists the commits",
        )
    return commit


def open_git_status(project: Project, name: str) -> GitStatus:
    return GitStatus(str(find_agent_dir(project, name)))


def collect_known_work(project: Project, store: FileStore, name: str, since: str = "") -> KnownWork:
    """Return the facts about an agent's work that do not need a transcript.

    `since` is the commit at which the work started, or empty if unknown.
    """
    there = open_git_status(project, name)
    current = store.read(name)
    opened = open_loops.list_open_loops(
        current.projection.loops, clock.read_clock(), project.settings.runtime.loops
    )
    standing = _read_relay(store, name)
    changed = dict.fromkeys((*there.changed(), *(there.committed(since) if since else ())))
    return KnownWork(
        commits=there.commits(since),
        changed=tuple(changed),
        carried=_read_left_over(store, name, current.committed),
        loops=tuple(f"{loop.id}: {loop.text}" for loop in opened),
        phase=_read_field(standing, RelayField.CURRENT_PHASE),
        decisions=list_carried_items(_read_field(standing, RelayField.KEY_DECISIONS)),
        next_action=(standing.next_action or "").strip() if standing else "",
    )


def _read_relay(store: FileStore, name: str) -> relay.Relay | None:
    data = store.document(name, "relay")
    try:
        return relay.parse(data) if data else None
    except DocumentError:
        return None


def _read_left_over(store: FileStore, name: str, projection: Projection) -> tuple[str, ...]:
    """Return the remaining work from the last checkpoint of the current cycle."""
    standing = projection.documents.get("checkpoint")
    # Sessions that the user started are always read from their beginning.
    is_kept = standing is not None and not standing.session and standing.seq > projection.began.seq
    data = store.document(name, "checkpoint") if is_kept else None
    try:
        parsed = checkpoint.parse(data) if data else None
    except DocumentError:
        return ()
    return (
        list_carried_items(parsed.content(CheckpointSection.REMAINING_WORK) or "") if parsed else ()
    )


def _read_field(standing: relay.Relay | None, field: RelayField) -> str:
    return (standing.content(field) or "").strip() if standing else ""
