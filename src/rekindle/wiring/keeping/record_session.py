"""Record a session in an agent's log, so that the next run continues it."""

import secrets
from typing import Literal

from rekindle.documents import events
from rekindle.policy.projection.projection import Projection
from rekindle.policy.supervision.next_move import select_open_launches
from rekindle.stores.files import FileStore

Origin = Literal["person", "import"]
WORDS: dict[Origin, str] = {
    "person": "a person's session, which Rekindle continues",
    "import": "a session from another machine or folder, which Rekindle continues",
}


def is_imported(known: Projection) -> bool:
    """Return whether the agent's next launch continues a session that was moved here."""
    launches = select_open_launches(known)
    return bool(launches) and launches[-1].words == WORDS["import"]


def record_session(
    store: FileStore, agent: str, *, session: str, harness: str, transcript: str, origin: Origin
) -> None:
    """Record a session that has ended as the last launch of the agent's current cycle."""
    with store.writer(agent) as writer:
        writer.fold()
        now, cycle = writer.now(), writer.projection.current_cycle
        launch = secrets.token_hex(8)
        life = writer.projection.lives.get(session)
        is_same = life is not None and life.transcript == transcript
        started = events.SessionStarted(
            ts=now,
            session=session,
            harness=harness,
            source="resume",
            launch=launch,
            transcript="" if is_same else transcript,
        )
        writer.append(
            started,
            events.LaunchStarted(
                ts=now,
                launch=launch,
                cycle=cycle,
                session=session,
                harness=harness,
                origin=origin,
            ),
            events.LaunchEnded(
                ts=now,
                launch=launch,
                cycle=cycle,
                session=session,
                exit="interrupted",
                opened=True,
                words=WORDS[origin],
            ),
            events.SessionEnded(ts=now, session=session, reason=origin),
        )
        writer.project()
