"""Proposals of an agent: notes for its next relay, resolutions to confirm, and questions.

A proposal changes nothing by itself. The next relay that Rekindle commits for the agent takes up
its decisions and failed approaches. A person confirms a resolution, and answers a question.
"""

import msgspec

from rekindle.documents.events import ProposalMade
from rekindle.policy.projection.open_loops import Loop, LoopMap
from rekindle.thresholds.proposal_limits import NOTES_A_RELAY, PROPOSALS_KEPT

ProposalMap = dict[str, ProposalMade]
MERGING_AUTHORS = frozenset({"agent", "summary", "carried"})
"""Authors of relays that take up the agent's notes. A person's relay stays as it was written."""
NOTES = frozenset({"decision", "failed approach"})
"""Kinds of proposal that the next relay takes up."""


def record_proposal(proposals: ProposalMap, event: ProposalMade) -> None:
    """Add a proposal. If it was made before, the later one counts."""
    key = f"{event.about} {event.id} {event.text}"
    previous = proposals.get(key)
    if previous is None or _order(event) > _order(previous):
        proposals[key] = event


def list_new_notes(proposals: ProposalMap, merged: int) -> list[ProposalMade]:
    """Return the notes that no relay contains yet, oldest first.

    `merged` is the log position of the last relay that took up notes.
    """
    notes = [
        proposal
        for proposal in proposals.values()
        if proposal.about in NOTES and not 0 < proposal.seq < merged
    ]
    return sorted(notes, key=lambda note: (note.ts, note.text))[-NOTES_A_RELAY:]


def find_claim(proposals: ProposalMap, loop: Loop) -> ProposalMade | None:
    """Return the agent's latest proposal to resolve an open loop, or None."""
    claims = [
        proposal
        for proposal in proposals.values()
        if proposal.about == "resolution"
        and proposal.id == loop.id
        and proposal.ts >= loop.opened_at
    ]
    return max(claims, key=_order, default=None) if loop.is_open else None


def prune_proposals(proposals: ProposalMap, loops: LoopMap, merged: int) -> ProposalMap:
    """Return the proposals without those that were taken up, and without the oldest ones."""
    kept = [
        (key, proposal)
        for key, proposal in proposals.items()
        if not (proposal.about in NOTES and 0 < proposal.seq < merged)
        and not (proposal.about == "resolution" and not _is_open(loops, proposal.id))
    ]
    return dict(sorted(kept, key=lambda item: item[1].seq)[-PROPOSALS_KEPT:])


def _is_open(loops: LoopMap, identity: str) -> bool:
    loop = loops.get(identity)
    return loop is not None and loop.is_open


def _order(proposal: ProposalMade) -> tuple[int, bytes]:
    return proposal.seq, msgspec.json.encode(proposal)
