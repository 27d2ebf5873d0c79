"""What was said and done in sessions: as the archive keeps it, else as the CLI has written it.

What a supervised session was asked first stands in its transcript where a person's words do, and is
ours: of it only the task is the person's.
"""

from collections.abc import Iterable, Iterator

import msgspec

from rekindle.documents import primer
from rekindle.documents.transcript import Turn
from rekindle.errors import StoreError
from rekindle.flows.read_transcript import ReadTranscript
from rekindle.flows.world import Agent, Trouble, World
from rekindle.stores.files.transcripts import TranscriptArchive


def session_turns(agent: Agent, world: World, sessions: Iterable[str]) -> list[Turn]:
    """The turns of the main threads of these sessions, in order, numbered through."""
    told: list[Turn] = []
    task = world.store.redaction.text(agent.task)
    try:
        for name in filter(None, dict.fromkeys(sessions)):
            main = (turn for turn in _turns(agent, world, name) if not turn.thread)
            told += without_primer(main, task, is_supervised=not agent.stays)
    except StoreError as error:
        world.tell(Trouble(str(error)))  # what stands before the damage is told
    return [msgspec.structs.replace(turn, number=place) for place, turn in enumerate(told, 1)]


def _turns(agent: Agent, world: World, session: str) -> Iterator[Turn]:
    archive = TranscriptArchive(world.store.folder(agent.name).transcripts)
    parts = archive.parts(session)
    for part in parts:
        yield from archive.turns(part)
    life = world.store.read(agent.name).projection.lives.get(session)
    if not parts and life is not None and life.transcript:
        redacted = world.store.redaction.text
        reading = ReadTranscript(life.transcript, agent.harness)
        yield from (turn.without_secrets(redacted) for turn in reading.all())


def without_primer(
    turns: Iterable[Turn], task: str, *, is_supervised: bool, is_begun: bool = False
) -> Iterator[Turn]:
    """The turns of a session as whoever they are from has said them.

    Of a supervised one the first that a person seems to have asked is a primer, unless the turns
    are those of one that had `is_begun` before them. Others are known by their words.
    """
    for turn in turns:
        if turn.who != "person":
            yield turn
            continue
        if is_supervised and not is_begun:
            yield _with(turn, task)
        elif primer.is_one(turn.text):
            yield _with(turn, ("" if is_supervised else primer.asked_in(turn.text)) or task)
        elif primer.is_resumption(turn.text):
            yield _with(turn, "")
        else:
            yield turn
        is_begun = True


def _with(turn: Turn, text: str) -> Turn:
    return msgspec.structs.replace(turn, text=text, who="person" if text else "cli")
