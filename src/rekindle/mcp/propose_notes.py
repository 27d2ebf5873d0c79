"""Make an agent's proposals. None of them changes what a person has written."""

import msgspec

from rekindle.documents.events import Proposal, ProposalMade
from rekindle.errors import UsageError
from rekindle.formats.identifiers import strip_invisible, to_one_line
from rekindle.mcp.served_agent import ServedAgent
from rekindle.policy.projection import open_loops
from rekindle.system import clock
from rekindle.thresholds.proposal_limits import NOTES_A_RELAY


def propose_loop(agent: ServedAgent, id: str, text: str) -> str:  # noqa: A002 - the argument's name
    """Open a loop, or reword the agent's own."""
    with agent.lock:
        loops = agent.read().projection.loops
        event = open_loops.propose_loop(loops, id, clean_text(agent, text), clock.read_clock())
        if event is None:
            return f"Loop {id} is already open with this text."
        loop = loops.get(id)
        if loop is not None and loop.is_open and loop.opened_by != agent.name:
            raise UsageError(
                f"loop {id} is open, and you did not open it: {loop.text}",
                hint="use another id for your own loop",
            )
        agent.submit(msgspec.structs.replace(event, by=agent.name))
    return f"Loop {id} is open. Later sessions see it until it is resolved."


def propose_resolution(agent: ServedAgent, id: str, reason: str) -> str:  # noqa: A002 - as above
    """Resolve the agent's own loop, or propose that a person resolves another one."""
    with agent.lock:
        loops = agent.read().projection.loops
        event = open_loops.resolve_loop(loops, id, clean_text(agent, reason), clock.read_clock())
        if event is None:
            return f"Loop {id} is already resolved."
        if loops[id].opened_by == agent.name:
            agent.submit(msgspec.structs.replace(event, by=agent.name))
            return f"Loop {id} is resolved."
        _propose(agent, "resolution", event.reason, id)
    return f"Noted. You did not open loop {id}, so it stays open until a person resolves it."


def propose_decision(agent: ServedAgent, decision: str, reason: str) -> str:
    """Note a decision for the next relay."""
    return _propose_note(agent, "decision", f"{decision}: {reason}")


def propose_failed_approach(agent: ServedAgent, approach: str, reason: str) -> str:
    """Note a failed approach for the next relay."""
    return _propose_note(agent, "failed approach", f"{approach}: {reason}")


def _propose_note(agent: ServedAgent, about: Proposal, text: str) -> str:
    with agent.lock:
        notes, text = agent.read().projection.new_notes, clean_text(agent, text)
        if any((note.about, note.text) == (about, text) for note in notes):
            return "This is already noted."
        if len(notes) >= NOTES_A_RELAY:
            raise UsageError(
                f"{len(notes)} notes already wait for the next relay",
                hint="write this one into the relay yourself",
            )
        _propose(agent, about, text)
    return "Noted. The next relay contains it, and so does the next session after a crash."


def _propose(agent: ServedAgent, about: Proposal, text: str, loop: str = "") -> None:
    agent.submit(
        ProposalMade(ts=clock.read_clock(), about=about, text=text, id=loop, by=agent.name)
    )


def clean_text(agent: ServedAgent, text: str) -> str:
    """Return the text as the log will contain it: one line, without secrets."""
    return to_one_line(agent.reader.redaction.text(strip_invisible(text)))
