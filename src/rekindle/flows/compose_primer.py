"""What a session opens with, gathered from the store."""

from collections.abc import Sequence
from datetime import datetime

from rekindle.documents import primer
from rekindle.documents import relay as relays
from rekindle.documents.background import list_ended, tell_ended
from rekindle.documents.primer import Primer, Recovery
from rekindle.documents.relay import Relay
from rekindle.documents.state import OpenLoop
from rekindle.errors import DocumentError
from rekindle.policy import loop, loops, sessions, trim
from rekindle.policy.fold import Projection
from rekindle.policy.settings import Settings
from rekindle.stores.files import FileStore
from rekindle.stores.files.view import View

_CLAIMED = (
    "The last cycle reported that the work is done, and it was started again: compare the work with"
    " the task."
)


def compose_primer(
    store: FileStore,
    agent: str,
    seen: View,
    *,
    now: datetime,
    settings: Settings,
    rules: str = "",
    task: str = "",
    recovering: bool = False,
    asked: str = "",
    draft: str = "",
    converges: bool = False,
    session: str = "",
) -> Primer:
    """Everything a fresh session needs; with a recovery notice where one was interrupted.

    The task of the notice is the relay's Next Action, else the last thing that was asked for. With
    a `draft` it is told to write the next relay there. A checkpoint that is one session's alone is
    told to that `session` only.
    """
    whole = str(store.folder(agent).document("relay"))
    relay = _relay(store, agent)
    cap = settings.runtime.relay.max_relay_tokens
    opened = loops.open_now(seen.projection.loops, now, settings.runtime.loops)
    recovery = None
    if recovering:
        doing = (relay.next_action if relay else None) or asked or task or "not known"
        recovery = Recovery(doing.strip(), len(opened))
    known, stall = seen.committed, settings.runtime.stall
    last, answers = known.last_ended, known.answers_since
    checkpoint = _checkpoint(store, agent, seen, session)
    notices = [
        _moved(known),
        _ended(known, checkpoint),
        loop.notice(known.ended, known.run.heeded, stall),
        loop.failed_until(known.ended),
        loop.failed_review(known.ended),
        _CLAIMED if last and last.claimed and "failed" not in {last.until, last.review} else "",
        loop.tried(known.ended),
        last.redebated if last else "",
        _owed(known, relay) if converges else "",
    ]
    return Primer(
        recovery=recovery,
        stall="\n\n".join(filter(None, notices)),
        answer="\n".join(primer.answered(one.asked, one.text) for one in answers),
        closing=primer.closing(draft, cap) if draft else "",
        rules=rules,
        relay=trim.head(relay, cap, whole) if relay else None,
        relay_path=whole,
        checkpoint=checkpoint,
        brief=_text(store.document(agent, "brief")),
        ledger=ledger(opened),
        task=task,
    )


def ledger(opened: Sequence[OpenLoop]) -> str:
    """Open loops, a line each."""
    return "\n".join(f"- {loops.line(one)}" for one in opened)


def _moved(known: Projection) -> str:
    """That another host had it before, to the first session here."""
    last = max((one.seq for one in known.attempts.values()), default=0)
    moved = known.moved
    is_new = moved.seq > last > 0 and bool(moved.previous)
    return primer.moved(moved.host, moved.previous, moved.left) if is_new else ""


def _ended(known: Projection, checkpoint: str) -> str:
    """What was ended with the last launch, unless the checkpoint says so."""
    last = sessions.newest(known.attempts)
    swept = last.swept if last is not None else ()
    return "" if list_ended(swept) in checkpoint else tell_ended(swept)


def _owed(known: Projection, relay: Relay | None) -> str:
    # Only who is held to it pays for the words of options and choices.
    from rekindle.policy import convergence  # noqa: PLC0415

    return convergence.notice(known.ended, known.last_ended, relay)


def _relay(store: FileStore, agent: str) -> Relay | None:
    data = store.document(agent, "relay")
    if data is None:
        return None
    try:
        return relays.parse(data)
    except DocumentError:
        return None  # edited into something unusable: the next writer sets it aside and says so


def _checkpoint(store: FileStore, agent: str, seen: View, session: str) -> str:
    """The checkpoint, unless a relay was written after it, which then knows more.

    Or a cycle has begun since, which is none of what it was written for, or it is for one session
    alone.
    """
    standing = seen.committed.documents
    found, relay = standing.get("checkpoint"), standing.get("relay")
    is_told = relay is not None and found is not None and relay.seq > found.seq
    if found is None or is_told or found.seq < seen.committed.began.seq:
        return ""
    if found.session not in ("", session):
        return ""
    return _text(store.document(agent, "checkpoint"))


def _text(data: bytes | None) -> str:
    return data.decode("utf-8", "replace") if data else ""
