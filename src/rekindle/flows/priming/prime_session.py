"""Print the primer for sessions that the user starts or that the CLI compacts."""

from collections.abc import Callable, Sequence
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
    agent: str
    store: FileStore
    settings: Settings
    clock: Callable[[], datetime]
    is_alive: Callable[[str], bool]
    """Return whether a process is still running."""
    rules: str = ""
    task: str = ""

    def prime(self, start: SessionStarted, say: Callable[[str], None]) -> None:
        """Print the primer for a session, unless it was already printed.

        If two hooks report the same start, the agent's lock lets only the first one print. The
        primer is recorded after it is printed. If the log is not writable, the primer is printed
        anyway, because printing it twice is better than not at all. It has the oldest message that
        waits for the agent, which is then recorded as delivered. If the hook is killed before, or
        the recording fails, the next session gets the message again.
        """
        is_printed = False
        try:
            with self.store.writer(self.agent, wait=PRIME_LOCK_SECONDS) as writer:
                writer.fold()
                if _was_primed(writer.projection.seen, start, writer.now()):
                    return
                agent_view = self.store.read(self.agent)
                lost = self._find_lost(start, agent_view)
                messages = _select_message(start, agent_view)
                text = self._render_text(start, agent_view, lost, messages)
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
                # Record lost sessions now, so that no later session reports them again.
                writer.append(
                    *(events.SessionLost(ts=ts, session=session) for session in lost),
                    primer_event,
                    *(
                        events.MessageDelivered(
                            ts=ts, message=sent.message, session=start.session, how="primer"
                        )
                        for sent in messages
                    ),
                )
                writer.project()
        except RekindleError:
            if not is_printed:
                agent_view = self.store.read(self.agent)
                say(self._render_text(start, agent_view, self._find_lost(start, agent_view), ()))

    def _find_lost(self, start: SessionStarted, agent_view: AgentView) -> list[str]:
        """Return sessions that have no recorded end even though their process is gone.

        This applies only to new sessions. A session that was resumed, cleared, compacted or forked
        continues an earlier one, which is not lost.
        """
        if start.source != "startup":
            return []
        return [
            name
            for name, life in sessions.select_unended_sessions(agent_view.projection.lives).items()
            if name != start.session and not self.is_alive(life.process)
        ]

    def _render_text(
        self,
        start: SessionStarted,
        agent_view: AgentView,
        lost: list[str],
        messages: Sequence[events.MessageSent],
    ) -> str:
        lives = agent_view.projection.lives
        now = self.clock()
        primer = compose_primer(
            self.store,
            self.agent,
            agent_view,
            now=now,
            settings=self.settings,
            rules=self.rules,
            recovering=bool(lost),
            prompt=next(
                (request.text for name in reversed(lost) if (request := lives[name].asked)), ""
            ),
            session=start.session,
            messages=messages,
        )
        if start.source == "compact":
            own = lives.get(start.session)
            prompt = own.asked.text if own is not None and own.asked is not None else ""
            limits = self.settings.runtime.loops
            resolved = open_loops.list_recently_resolved(agent_view.projection.loops, now, limits)
            closed = "\n".join(f"- {item.id}: {item.reason}" for item in resolved)
            primer = msgspec.structs.replace(
                primer, checkpoint=_render_done_work(primer.checkpoint)
            )
            text = primers.render_reminder(primer, self.task if start.launch else prompt, closed)
        else:
            text = primers.render(primer, limit=HOOK_CHARACTERS)
        return primers.cut_text(text, HOOK_CHARACTERS, primer.relay_path)


def _select_message(start: SessionStarted, agent_view: AgentView) -> list[events.MessageSent]:
    """Return the message for a session that a person starts. A primer has room for one."""
    is_own = not start.launch and start.source != "compact"
    return agent_view.projection.waiting_messages[:1] if is_own else []


def _render_done_work(text: str) -> str:
    """Return the finished work listed in a checkpoint. Everything else is already in the primer."""
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


def _was_primed(reports: dict[str, datetime], start: SessionStarted, now: datetime) -> bool:
    primed_at = reports.get(f"primer {start.session} {start.source}")
    if primed_at is None or start.source == "startup":
        return primed_at is not None  # a session starts only once
    return abs((now - primed_at).total_seconds()) < SAME_START_SECONDS
