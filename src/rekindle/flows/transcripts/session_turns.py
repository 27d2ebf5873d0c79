"""Read a session's turns from the archive, or from the CLI's transcript if it is not archived.

In a supervised session, Rekindle wrote the first prompt, although the transcript attributes it to
the user. Only the task inside that prompt is the user's.
"""

from collections.abc import Iterable, Iterator

import msgspec

from rekindle.documents import primer
from rekindle.documents.transcripts.turns import Turn
from rekindle.errors import StoreError
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts
from rekindle.flows.transcripts.transcript_reader import TranscriptReader
from rekindle.ports import Harness
from rekindle.stores.files.transcript_archive import TranscriptArchive


def read_session_turns(
    agent: AgentSpec, world: SupervisorPorts, sessions: Iterable[str]
) -> list[Turn]:
    """Return the sessions' main-thread turns, in order and renumbered."""
    collected: list[Turn] = []
    task = world.store.redaction.text(agent.task)
    with world.report_trouble(StoreError):  # use the turns before the damage
        for name in filter(None, dict.fromkeys(sessions)):
            main = (turn for turn in _read_turns(agent, world, name) if not turn.thread)
            collected += strip_primers(main, task, is_supervised=not agent.stays)
    return [
        msgspec.structs.replace(turn, number=number) for number, turn in enumerate(collected, 1)
    ]


def _read_turns(agent: AgentSpec, world: SupervisorPorts, session: str) -> Iterator[Turn]:
    archive = TranscriptArchive(world.store.folder(agent.name).transcripts)
    parts = archive.parts(session)
    for part in parts:
        yield from archive.turns(part)
    life = world.store.read(agent.name).projection.lives.get(session)
    if not parts and life is not None and life.transcript:
        redacted = world.store.redaction.text
        reading = TranscriptReader(life.transcript, _find_harness(agent, world, session))
        yield from (turn.without_secrets(redacted) for turn in reading.all())


def _find_harness(agent: AgentSpec, world: SupervisorPorts, session: str) -> Harness:
    """Return the harness of the CLI that ran a session, which may be another one than now."""
    attempts = world.store.read(agent.name).projection.attempts.values()
    names = [launch.harness for launch in attempts if launch.session == session]
    return agent.harnesses.get(names[-1], agent.harness) if names else agent.harness


def strip_primers(
    turns: Iterable[Turn], task: str, *, is_supervised: bool, is_begun: bool = False
) -> Iterator[Turn]:
    """Yield a session's turns without Rekindle's prompts.

    The first prompt of a supervised session is a primer, unless the turns start later in the
    session (`is_begun`). Other primers are recognized by their text.
    """
    for turn in turns:
        if turn.who != "person":
            yield turn
            continue
        if is_supervised and not is_begun:
            yield _replace_text(turn, task)
        elif primer.is_primer(turn.text):
            yield _replace_text(
                turn, ("" if is_supervised else primer.find_request(turn.text)) or task
            )
        elif primer.is_resume_prompt(turn.text):
            yield _replace_text(turn, "")
        else:
            yield turn
        is_begun = True


def _replace_text(turn: Turn, text: str) -> Turn:
    return msgspec.structs.replace(turn, text=text, who="person" if text else "cli")
