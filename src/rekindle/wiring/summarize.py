"""Who is asked for a summary, and what is known without asking."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from rekindle.config import Project
from rekindle.documents import checkpoint, relay
from rekindle.documents.checkpoint import Part
from rekindle.documents.identity import one_line
from rekindle.documents.manifest import Persona
from rekindle.documents.relay import Field
from rekindle.documents.summary import carried
from rekindle.errors import DocumentError, ManifestError, RekindleError, UsageError
from rekindle.flows.summarize import Summarize
from rekindle.harnesses import command
from rekindle.policy import environment, loops
from rekindle.policy.fold import Projection
from rekindle.policy.settings import AgentDefaults
from rekindle.ports import Harness
from rekindle.stores import private
from rekindle.stores.files import FileStore
from rekindle.stores.files.layout import Root
from rekindle.summarizers.headless import Headless
from rekindle.summarizers.mechanical import Known
from rekindle.system import clock, disk, programs
from rekindle.system.processes import Processes
from rekindle.system.worktree import WorkTree
from rekindle.thresholds.texts import QUOTED_CHARACTERS
from rekindle.wiring.agent_environment import locate_words
from rekindle.wiring.store import HARNESSES, text_of

PERSONA = "summarizer"


def summarizer(
    project: Project,
    store: FileStore,
    name: str,
    role: str = PERSONA,
    *,
    stops: Callable[[], bool] = bool,
) -> Summarize:
    """Who summarizes for an agent; once it `stops`, no answer is waited for."""
    cap = project.settings.runtime.relay.summarizer_max_input_tokens
    asked = headless(project, store, name, os.environ, role, stops=stops)
    return Summarize(asked.ask, cap=cap, words=asked.words) if asked else Summarize(None, cap=cap)


def headless(
    project: Project,
    store: FileStore,
    name: str,
    environ: Mapping[str, str],
    role: str = PERSONA,
    *,
    stops: Callable[[], bool] = bool,
) -> Headless | None:
    """Return the CLI that writes an agent's summaries: `personas: summarizer:`, else its own.

    None: no CLI is asked. A program of which nothing is known may do anything when it is asked
    something, and some CLIs cannot be asked without a session.
    """
    persona, found = _who(project, name, role)
    settings, entry = project.settings.runtime.relay, project.manifest.agents[name]
    is_unknown = found.NAME == command.NAME and not persona.command
    if settings.summarizer == "mechanical" or is_unknown or not found.CAN.questions:
        return None
    # What is started in the place of the CLI's own program, where it is the same CLI.
    own = (entry.command or ()) if entry.harness == (persona.adapter or entry.harness) else ()
    passed = environment.allowed(environ, found.PASSED_ON, found.NEVER_PASSED_ON)
    if "PATH" in passed and found.NAME != command.NAME:
        # A CLI that is asked starts programs too, and runs none of the project's for its answer.
        passed["PATH"] = programs.order_path(passed["PATH"])
    return Headless(
        harness=found,
        processes=Processes(),
        scratch=_scratch(project, store, name),
        environment=passed,
        program=locate_words(project, name, persona.command or own),
        persona=persona,
        words=_words(project, persona),
        usd=settings.summarizer_max_usd,
        stops=stops,
    )


def check(project: Project, name: str, role: str = PERSONA) -> None:
    """Whether somebody can be asked, before anything is begun that would need it hours later.

    Raises:
        ManifestError: There is no such persona, no such adapter, or a file of it cannot be read.
    """
    persona, _ = _who(project, name, role)
    if project.settings.runtime.relay.summarizer != "mechanical":
        _words(project, persona)


def _who(project: Project, name: str, role: str) -> tuple[Persona, Harness]:
    found = project.manifest.personas.get(role)
    if found is None and role != PERSONA:
        raise ManifestError(
            f"agent {name}: there is no persona named {role!r}",
            line=project.marked.line(("agents", name, "handover", "compaction", "persona")),
            hint=f"one of: {', '.join(project.manifest.personas) or 'none is there'}",
        )
    persona = found or Persona()
    harness = persona.adapter or project.manifest.agents[name].harness
    if harness not in HARNESSES:
        raise ManifestError(
            f"the summarizer's adapter {harness!r} is not there",
            line=project.marked.line(("personas", role, "adapter")),
            hint=f"one of: {', '.join(HARNESSES)}",
        )
    if persona.adapter and not HARNESSES[harness].CAN.questions:
        raise ManifestError(
            f"the summarizer's adapter {harness!r} cannot be asked for a summary",
            line=project.marked.line(("personas", role, "adapter")),
            hint="name another adapter, or set `runtime: {relay: {summarizer: mechanical}}`",
        )
    return persona, HARNESSES[harness]


def task(project: Project, name: str) -> str:
    """What its sessions are asked for; empty, where that cannot be read."""
    prompt = project.manifest.agents[name].prompt or AgentDefaults().prompt
    with suppress(RekindleError):
        return text_of(project, prompt, "prompt").strip()
    return ""


def _words(project: Project, persona: Persona) -> str:
    """What its persona says; where that says nothing, what `init` has written."""
    if persona.system_prompt_file:
        return text_of(project, persona.system_prompt_file, "system_prompt_file")
    return (disk.read(Root(project.path).summarizer) or b"").decode("utf-8", "replace")


def _scratch(project: Project, store: FileStore, name: str) -> Path:
    """Return the folder that questions are asked in: no agent can plant settings of a CLI there."""
    store.create(name)
    return private.of_project(project.path).make_agent(name).asked


def commit(project: Project, name: str, since: str) -> str:
    """The commit that somebody named; empty, where nobody did.

    Raises:
        UsageError: Git does not know it.
    """
    found = tree(project, name).commit(since) if since else ""
    if since and not found:
        raise UsageError(
            f"git knows no commit {one_line(since, QUOTED_CHARACTERS)!r}",
            hint="`git log --oneline` lists them",
        )
    return found


def tree(project: Project, name: str) -> WorkTree:
    return WorkTree(str(project.path / (project.manifest.agents[name].dir or AgentDefaults().dir)))


def known(project: Project, store: FileStore, name: str, since: str = "") -> Known:
    """What is known of an agent's work without reading a transcript.

    `since` is the commit that its folder stood at when the work began; empty: nobody knows.
    """
    there = tree(project, name)
    seen = store.read(name)
    opened = loops.open_now(seen.projection.loops, clock.now(), project.settings.runtime.loops)
    standing = _relay(store, name)
    changed = dict.fromkeys((*there.changed(), *(there.committed(since) if since else ())))
    return Known(
        commits=there.commits(since),
        changed=tuple(changed),
        carried=_left_over(store, name, seen.committed),
        loops=tuple(f"{loop.id}: {loop.text}" for loop in opened),
        phase=_text(standing, Field.CURRENT_PHASE),
        decisions=carried(_text(standing, Field.KEY_DECISIONS)),
        next_action=(standing.next_action or "").strip() if standing else "",
    )


def _relay(store: FileStore, name: str) -> relay.Relay | None:
    data = store.document(name, "relay")
    try:
        return relay.parse(data) if data else None
    except DocumentError:
        return None


def _left_over(store: FileStore, name: str, known: Projection) -> tuple[str, ...]:
    """What the last checkpoint of this cycle has left over."""
    standing = known.documents.get("checkpoint")
    # A person's own session is read from its beginning each time, and carries nothing over.
    is_kept = standing is not None and not standing.session and standing.seq > known.began.seq
    data = store.document(name, "checkpoint") if is_kept else None
    try:
        found = checkpoint.parse(data) if data else None
    except DocumentError:
        return ()
    return carried(found.content(Part.REMAINING_WORK) or "") if found else ()


def _text(standing: relay.Relay | None, field: Field) -> str:
    return (standing.content(field) or "").strip() if standing else ""
