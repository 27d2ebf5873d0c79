"""What a session is told that begins without a supervisor, or was compacted.

    python -I -m rekindle.wiring.prime AGENT_FOLDER < RECORD

hook.py starts it at the beginning of a session, which waits for it: it is no `rekindle` command and
imports only what it needs.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from rekindle import config
from rekindle.config import Project
from rekindle.documents import hookline
from rekindle.documents.event import AnyEvent, PromptSubmitted, SessionCompacted, SessionStarted
from rekindle.errors import ManifestError, RekindleError
from rekindle.flows.prime_session import PrimeSession
from rekindle.policy.settings import AgentDefaults
from rekindle.ports import Harness
from rekindle.system import clock, orphans
from rekindle.wiring.store import HARNESSES, open_store, text_of
from rekindle.wiring.trust import is_trusted


def main(folder: Path, record: bytes, say: Callable[[str], None]) -> None:
    """Tell the session whose start is the record; one that cannot be told is told why."""
    if not is_trusted(folder.parents[2]):
        return  # a relay that came with a cloned repository is not told to anybody
    line = hookline.parse(record.strip(b"\n").removeprefix(hookline.PREFIX))
    harness = HARNESSES.get(line.harness)
    event = harness.read_hook(line) if harness else None
    start = _start(event)
    if harness is not None and isinstance(event, SessionCompacted):
        _checkpoint(config.load(folder.parents[2]), folder.name, harness, event)
    if harness is None or start is None:
        return

    def tell(text: str) -> None:
        if text:
            say(harness.told(line.event, text))

    try:
        prime_session(config.load(folder.parents[2]), folder.name, start, tell)
    except RekindleError as error:
        tell(f"(Rekindle could not say where the work stands: {error}. Tell the person.)\n")


def _checkpoint(project: Project, name: str, harness: Harness, event: SessionCompacted) -> None:
    """Write down what a session has done that is about to be compacted."""
    # Only here: every other start is spared what this needs.
    from rekindle.flows.checkpoint_session import CheckpointSession  # noqa: PLC0415
    from rekindle.wiring import summarize  # noqa: PLC0415

    store, entry = open_store(project), project.manifest.agents.get(name)
    prompt = entry.prompt or AgentDefaults().prompt if entry else None
    CheckpointSession(
        agent=name,
        task=_told_of(project, prompt, "prompt"),
        stays=entry is not None and entry.mode == "stay",
        store=store,
        harness=harness,
        known=lambda since: summarize.known(project, store, name, since),
    ).write(event)


def _start(event: AnyEvent | None) -> SessionStarted | None:
    """The beginning that an event is: where a CLI can be told nothing then, its first prompt."""
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
    PrimeSession(
        agent=name,
        store=open_store(project),
        settings=project.settings,
        clock=clock.now,
        is_alive=orphans.is_alive,
        rules=_told_of(project, entry.rules if entry else None, "rules"),
        task=_told_of(project, prompt, "prompt"),
    ).prime(start, tell)


def _told_of(project: Project, file: str | None, key: str) -> str:
    """A file's text; one that cannot be read must not cost a session all the others."""
    try:
        return text_of(project, file, key)
    except ManifestError as error:
        return f"({error}; tell the person)"


def _print(text: str) -> None:
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.stdin.buffer.read(), _print)
