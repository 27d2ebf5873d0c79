"""What was said and done in sessions: as the archive keeps it, else as the CLI has written it."""

from collections.abc import Iterable, Iterator

import msgspec

from rekindle.documents.transcript import Turn
from rekindle.errors import StoreError
from rekindle.flows.read_transcript import ReadTranscript
from rekindle.flows.world import Agent, Trouble, World
from rekindle.stores.files.transcripts import TranscriptArchive


def session_turns(agent: Agent, world: World, sessions: Iterable[str]) -> list[Turn]:
    """The turns of the main threads of these sessions, in order, numbered through."""
    told: list[Turn] = []
    try:
        for name in filter(None, dict.fromkeys(sessions)):
            told += (turn for turn in _turns(agent, world, name) if not turn.thread)
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
