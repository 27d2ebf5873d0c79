"""What a session is told that begins without a supervisor, or was compacted.

    python -I -m rekindle.wiring.prime AGENT_FOLDER < RECORD

hook.py starts it at the beginning of a session, which waits for it: it is no `rekindle` command and
imports only what it needs.
"""

import sys
from pathlib import Path

from rekindle import config
from rekindle.config import Project
from rekindle.documents import hookline
from rekindle.documents.event import AnyEvent, PromptSubmitted, SessionStarted
from rekindle.errors import ManifestError
from rekindle.flows.prime_session import PrimeSession
from rekindle.policy.settings import AgentDefaults
from rekindle.system import clock, orphans
from rekindle.wiring.store import HARNESSES, open_store, text_of


def main(folder: Path, record: bytes) -> str:
    """The text for the session whose start is the record; empty where it is told nothing."""
    line = hookline.parse(record.strip(b"\n").removeprefix(hookline.PREFIX))
    harness = HARNESSES.get(line.harness)
    start = _start(harness.read_hook(line)) if harness else None
    if harness is None or start is None:
        return ""
    said = prime_session(config.load(folder.parents[2]), folder.name, start)
    return harness.told(line.event, said) if said else ""


def _start(event: AnyEvent | None) -> SessionStarted | None:
    """The beginning that an event is: where a CLI can be told nothing then, its first prompt."""
    if isinstance(event, PromptSubmitted):
        return SessionStarted(
            ts=event.ts, session=event.session, harness="", source="startup", process=""
        )
    return event if isinstance(event, SessionStarted) else None


def prime_session(project: Project, name: str, start: SessionStarted) -> str:
    entry = project.manifest.agents.get(name)
    prompt = entry.prompt or AgentDefaults().prompt if entry and start.launch else None
    return PrimeSession(
        agent=name,
        store=open_store(project),
        settings=project.settings,
        clock=clock.now,
        is_alive=orphans.is_alive,
        rules=_told_of(project, entry.rules if entry else None, "rules"),
        task=_told_of(project, prompt, "prompt"),
    ).prime(start)


def _told_of(project: Project, file: str | None, key: str) -> str:
    """A file's text; one that cannot be read must not cost a session all the others."""
    try:
        return text_of(project, file, key)
    except ManifestError as error:
        return f"({error}; tell the person)"


if __name__ == "__main__":
    said = main(Path(sys.argv[1]), sys.stdin.buffer.read())
    sys.stdout.buffer.write(said.encode("utf-8", "replace"))
