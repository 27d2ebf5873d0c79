"""Prime a session with the state of the work after a person started it or the CLI compacted it."""

from collections.abc import Callable
from datetime import datetime

import msgspec

from rekindle.documents import checkpoint, events
from rekindle.documents import primer as primers
from rekindle.documents.checkpoint import CheckpointSection
from rekindle.documents.events import SessionStarted
from rekindle.errors import DocumentError, RekindleError
from rekindle.flows.priming.compose_primer import compose_primer
from rekindle.policy.projection import open_loops, sessions
from rekindle.policy.settings.runtime_settings import HOOK_CHARACTERS, SAME_START_SECONDS, Settings
from rekindle.stores.files import FileStore
from rekindle.stores.log.view import AgentView
from rekindle.thresholds.hook_limits import PRIME_LOCK_SECONDS


class SessionPrimer(msgspec.Struct, frozen=True):
    """Primes an agent's sessions."""

    agent: str
    store: FileStore
    settings: Settings
    clock: Callable[[], datetime]
    is_alive: Callable[[str], bool]
    """Function that returns whether a process is still running."""
    rules: str = ""
    task: str = ""

    def prime(self, start: SessionStarted, say: Callable[[str], None]) -> None:
        """Print the primer for a session, unless it was already printed.

        If two hooks report the same start, the agent's lock ensures that only the first is
        answered. The primer is recorded only after it was printed. If the store cannot be written,
        the primer is printed anyway: printing it twice is better than not at all.
        """
        is_printed = False
        try:
            with self.store.writer(self.agent, wait=PRIME_LOCK_SECONDS) as writer:
                writer.fold()
                if _was_primed(writer.projection.seen, start, writer.now()):
                    return
                seen = self.store.read(self.agent)
                lost = self._find_lost(start, seen)
                text = self._render_text(start, seen, lost)
                is_printed = True
                say(text)
                ts = writer.now()
                primer_event = events.PrimerGiven(
                    ts=ts,
                    session=start.session,
                    source=start.source,
                    characters=len(text),
                    recovery=bool(lost),
                )
                # Record the lost sessions, so that no later session is told about them again.
                writer.append(
                    *(events.SessionLost(ts=ts, session=session) for session in lost), primer_event
                )
                writer.project()
        except RekindleError:
            if not is_printed:
                seen = self.store.read(self.agent)
                say(self._render_text(start, seen, self._find_lost(start, seen)))

    def _find_lost(self, start: SessionStarted, seen: AgentView) -> list[str]:
        """Return the sessions without a recorded end whose process is no longer running.

        Only a new session looks for lost ones. A resumed, cleared, compacted or forked session
        continues a session that is not lost.
        """
        if start.source != "startup":
            return []
        return [
            name
            for name, life in sessions.select_unended_sessions(seen.projection.lives).items()
            if name != start.session and not self.is_alive(life.process)
        ]

    def _render_text(self, start: SessionStarted, seen: AgentView, lost: list[str]) -> str:
        lives = seen.projection.lives
        now = self.clock()
        primer = compose_primer(
            self.store,
            self.agent,
            seen,
            now=now,
            settings=self.settings,
            rules=self.rules,
            recovering=bool(lost),
            asked=next(
                (request.text for name in reversed(lost) if (request := lives[name].asked)), ""
            ),
            session=start.session,
        )
        if start.source == "compact":
            own = lives.get(start.session)
            asked = own.asked.text if own is not None and own.asked is not None else ""
            limits = self.settings.runtime.loops
            resolved = open_loops.list_recently_resolved(seen.projection.loops, now, limits)
            closed = "\n".join(f"- {item.id}: {item.reason}" for item in resolved)
            primer = msgspec.structs.replace(
                primer, checkpoint=_render_done_work(primer.checkpoint)
            )
            text = primers.render_reminder(primer, self.task if start.launch else asked, closed)
        else:
            text = primers.render(primer, limit=HOOK_CHARACTERS)
        return primers.cut_text(text, HOOK_CHARACTERS, primer.relay_path)


def _render_done_work(text: str) -> str:
    """Return the completed work that a checkpoint lists; the primer covers the remaining work."""
    try:
        parsed = checkpoint.parse(text)
    except DocumentError:
        return ""
    sections = (
        CheckpointSection.COMPLETED_WORK,
        CheckpointSection.CURRENT_STATE,
        CheckpointSection.MODIFIED_FILES,
    )
    return "\n\n".join(f"{section}:\n{parsed.content(section)}" for section in sections)


def _was_primed(seen: dict[str, datetime], start: SessionStarted, now: datetime) -> bool:
    given = seen.get(f"primer {start.session} {start.source}")
    if given is None or start.source == "startup":
        return given is not None  # each session starts up only once
    return abs((now - given).total_seconds()) < SAME_START_SECONDS
