"""Compose the primer for a new session."""

from collections.abc import Sequence
from datetime import datetime

from rekindle.documents import primer
from rekindle.documents.events import MessageSent
from rekindle.documents.launches.background_record import render_ended_list, render_ended_notice
from rekindle.documents.primer import LostSession, Primer
from rekindle.documents.relay import Relay
from rekindle.documents.state import OpenLoop
from rekindle.flows.read_documents import read_relay
from rekindle.policy.projection import open_loops, sessions
from rekindle.policy.projection.projection import Projection
from rekindle.policy.relay import relay_notes, trim
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.policy.stall import stall_response
from rekindle.stores.files import FileStore
from rekindle.stores.log.view import AgentView

_CLAIMED = (
    "The last cycle reported that the work is done, and the agent was started again. Compare the"
    " work with the task."
)


def compose_primer(
    store: FileStore,
    agent: str,
    agent_view: AgentView,
    *,
    now: datetime,
    settings: Settings,
    rules: str = "",
    task: str = "",
    recovering: bool = False,
    prompt: str = "",
    draft: str = "",
    converges: bool = False,
    session: str = "",
    branch: str = "",
    messages: Sequence[MessageSent] = (),
) -> Primer:
    """Return the primer for a fresh session.

    If the last session was interrupted, a notice describes what it was doing: the relay's Next
    Action, the last request, or the agent's task. With `draft`, the primer tells the agent to write
    the next relay to that path. A checkpoint made for a single session is included only if
    `session` is that session. `branch` is the branch of the agent's own clone or work tree.
    `messages` are the messages from people that the agent has not received yet.
    """
    relay_path = str(store.folder(agent).document("relay"))
    relay, notes = read_relay(store, agent), agent_view.projection.new_notes
    # A session that crashed proposed these notes, and no relay contains them yet.
    noted = relay_notes.merge_notes(relay, notes) if relay else relay_notes.compose_notes(notes)
    cap = settings.runtime.relay.max_relay_tokens
    opened = open_loops.list_open_loops(agent_view.projection.loops, now, settings.runtime.loops)
    recovery = None
    if recovering:
        doing = (relay.next_action if relay else None) or prompt or task or "not known"
        recovery = LostSession(doing.strip(), len(opened))
    committed, stall = agent_view.committed, settings.runtime.stall
    last, answers = committed.last_ended_cycle, committed.new_answers
    checkpoint = _read_checkpoint(store, agent, agent_view, session)
    notices = [
        primer.render_workspace(branch) if branch else "",
        _render_move(committed),
        _render_rewind(committed),
        _render_ended(committed, checkpoint),
        stall_response.render_stall_notice(committed.ended, committed.run.intervened, stall),
        stall_response.render_until_failure(committed.ended),
        stall_response.render_failed_review(committed.ended),
        _CLAIMED if last and last.claimed and "failed" not in {last.until, last.review} else "",
        stall_response.render_failed_cycles(committed.ended),
        last.redebated if last else "",
        _render_stage(committed, relay) if converges else "",
    ]
    return Primer(
        recovery=recovery,
        stall="\n\n".join(filter(None, notices)),
        answer="\n".join(primer.render_answer(answer.asked, answer.text) for answer in answers),
        messages=primer.render_messages(messages),
        closing=primer.render_closing(draft, cap) if draft else "",
        rules=rules,
        relay=trim.cut_for_primer(noted, cap, relay_path) if noted else None,
        relay_path=relay_path,
        checkpoint=checkpoint,
        brief=_decode_document(store.document(agent, "brief")),
        ledger=render_ledger(opened),
        task=task,
    )


def render_ledger(opened: Sequence[OpenLoop]) -> str:
    """Return the open loops, one per line."""
    return "\n".join(f"- {open_loops.render_loop_line(loop)}" for loop in opened)


def _render_move(projection: Projection) -> str:
    """Return a notice for the first session after a move to this host, or ""."""
    last = max((launch.seq for launch in projection.attempts.values()), default=0)
    moved = projection.moved
    is_new = moved.seq > last > 0 and bool(moved.previous)
    return primer.render_move(moved.host, moved.previous, moved.left) if is_new else ""


def _render_rewind(known: Projection) -> str:
    """Return a notice for the first session after the work tree was rewound, or ""."""
    last = max((launch.seq for launch in known.attempts.values()), default=0)
    rewound = known.rewound
    is_new = rewound is not None and rewound.seq > last
    return primer.render_rewind(rewound.snapshot, rewound.occasion) if rewound and is_new else ""


def _render_ended(projection: Projection, checkpoint: str) -> str:
    """Return a notice about processes that were killed when the last launch ended, or ""."""
    last = sessions.find_newest_launch(projection.attempts)
    swept = last.swept if last is not None else ()
    return "" if render_ended_list(swept) in checkpoint else render_ended_notice(swept)


def _render_stage(projection: Projection, relay: Relay | None) -> str:
    # Imported here, because only agents with `converge:` need it.
    from rekindle.policy.relay import convergence  # noqa: PLC0415

    return convergence.render_stage_notice(projection.ended, projection.last_ended_cycle, relay)


def _read_checkpoint(store: FileStore, agent: str, agent_view: AgentView, session: str) -> str:
    """Return the checkpoint, or "" if it does not apply.

    It does not apply after a later relay or cycle, or if it was made for another session.
    """
    documents = agent_view.committed.documents
    checkpoint, relay = documents.get("checkpoint"), documents.get("relay")
    is_superseded = relay is not None and checkpoint is not None and relay.seq > checkpoint.seq
    if checkpoint is None or is_superseded or checkpoint.seq < agent_view.committed.began.seq:
        return ""
    if checkpoint.session not in ("", session):
        return ""
    return _decode_document(store.document(agent, "checkpoint"))


def _decode_document(data: bytes | None) -> str:
    return data.decode("utf-8", "replace") if data else ""
