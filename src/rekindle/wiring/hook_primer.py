"""Print the context for a session that started without a supervisor or was compacted.

    python -I -m rekindle.wiring.hook_primer AGENT_FOLDER < RECORD

The hook runs this program when a session starts, and the session waits for it. It is not a
`rekindle` command, and imports only what it needs.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from rekindle import config
from rekindle.config import Project
from rekindle.documents.events import (
    AnyEvent,
    PromptSubmitted,
    SessionCompacted,
    SessionStarted,
)
from rekindle.documents.hooks import hook_record
from rekindle.errors import ManifestError, RekindleError
from rekindle.flows.priming.prime_session import SessionPrimer
from rekindle.policy.settings.runtime_settings import AgentDefaults
from rekindle.ports import Harness
from rekindle.stores.folders.private_files import find_private_project
from rekindle.system import clock
from rekindle.system.files import durable_files
from rekindle.system.processes import launch_processes
from rekindle.wiring.access.trust_checks import is_trusted
from rekindle.wiring.open_store import (
    HARNESSES,
    open_store,
    read_named_file,
)


def main(folder: Path, record: bytes, say: Callable[[str], None]) -> None:
    """Print the context for the new session, or the reason why there is none."""
    load = _find_project(folder)
    if load is None:
        return
    line = hook_record.parse(record.strip(b"\n").removeprefix(hook_record.PREFIX))
    harness = HARNESSES.get(line.harness)
    event = harness.read_hook(line) if harness else None
    start = _find_start(event)
    if harness is not None and isinstance(event, SessionCompacted):
        _write_checkpoint(load(), folder.name, harness, event)
    if harness is None or start is None:
        return

    def print_primer(text: str) -> None:
        if text:
            say(harness.render_hook_output(line.event, text))

    try:
        prime_session(load(), folder.name, start, print_primer)
    except RekindleError as error:
        print_primer(f"(Rekindle could not load the state of the work: {error}. Tell the user.)\n")


def _find_project(folder: Path) -> Callable[[], Project] | None:
    """Return a function that reads an agent's project, or None if the user does not trust it.

    A cloned repository may come with a relay. An agent that a program runs without a manifest has
    its settings outside the folder, where only the user can write them.
    """
    root = folder.parents[2]
    if is_trusted(root):
        return lambda: config.load_project(root)
    settings = durable_files.read_bytes(find_private_project(root).agent(folder.name).manifest)
    return None if settings is None else lambda: config.make_project(root, settings.decode())


def _write_checkpoint(
    project: Project, name: str, harness: Harness, event: SessionCompacted
) -> None:
    """Write a checkpoint before a session is compacted."""
    # Imported here, because every other session start must stay fast.
    from rekindle.flows.handoff.compaction_checkpoint import CompactionCheckpointer  # noqa: PLC0415
    from rekindle.wiring import summarizer_setup  # noqa: PLC0415

    store, entry = open_store(project), project.manifest.agents.get(name)
    prompt = entry.prompt or AgentDefaults().prompt if entry else None
    CompactionCheckpointer(
        agent=name,
        task=_read_optional(project, prompt, "prompt"),
        stays=entry is not None and entry.mode == "stay",
        store=store,
        harness=harness,
        known=lambda since: summarizer_setup.collect_known_work(project, store, name, since),
    ).write(event)


def _find_start(event: AnyEvent | None) -> SessionStarted | None:
    """Return the start event of a session, or its first prompt if the CLI reports no start."""
    if isinstance(event, PromptSubmitted):
        return SessionStarted(
            ts=event.ts, session=event.session, harness="", source="startup", process=""
        )
    return event if isinstance(event, SessionStarted) else None


def prime_session(
    project: Project, name: str, start: SessionStarted, tell: Callable[[str], None]
) -> None:
    entry = project.manifest.agents.get(name)
    prompt = entry.prompt or AgentDefaults().prompt if entry and start.launch else None
    SessionPrimer(
        agent=name,
        store=open_store(project),
        settings=project.settings,
        clock=clock.read_clock,
        is_alive=launch_processes.is_alive,
        rules=_read_optional(project, entry.rules if entry else None, "rules"),
        task=_read_optional(project, prompt, "prompt"),
    ).prime(start, tell)


def _read_optional(project: Project, file: str | None, key: str) -> str:
    """Return a file's text, or a note telling the session that it cannot be read."""
    try:
        return read_named_file(project, file, key)
    except ManifestError as error:
        return f"({error}; tell the user)"


def _print_text(text: str) -> None:
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.stdin.buffer.read(), _print_text)
