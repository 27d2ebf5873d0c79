"""Proposals: which are still to be taken up, and which claims concern an open loop."""

from datetime import UTC, datetime, timedelta

import pytest

from rekindle.documents import events
from rekindle.documents.events import LoopAdded, LoopResolved, ProposalMade
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection, prune_projection
from rekindle.policy.projection.proposals import find_claim
from rekindle.thresholds.proposal_limits import NOTES_A_RELAY, PROPOSALS_KEPT

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def propose(seq, text="regexes: too slow", about="failed approach", **more):
    ts = NOON + timedelta(seconds=seq)
    return ProposalMade(ts=ts, seq=seq, about=about, text=text, by="trades", **more)


def commit(seq, by="agent"):
    return events.RelayCommitted(ts=NOON, seq=seq, sha256="aa", path="x.md", by=by)


def fold(*happened):
    return fold_events(Projection("trades"), happened)


@pytest.mark.parametrize(
    ("by", "left"), [("agent", 0), ("summary", 0), ("carried", 0), ("person", 1), ("agent-edit", 1)]
)
def test_a_relay_of_the_agent_takes_up_its_notes(by, left):
    """A relay that a person wrote leaves the notes for the next one."""
    known = fold(propose(1), commit(2, by))
    assert len(known.new_notes) == left
    assert len(prune_projection(known).proposals) == left


def test_a_note_that_is_proposed_again_is_new_again():
    """A relay may have dropped it in the meantime."""
    known = fold(propose(1), commit(2), propose(3))
    assert [note.seq for note in known.new_notes] == [3]


def test_a_note_that_is_still_in_the_inbox_is_new():
    """It has no position in the log yet, and is listed once."""
    assert [note.text for note in fold(commit(2), propose(0)).new_notes] == ["regexes: too slow"]
    assert len(fold(propose(0), propose(1)).new_notes) == 1


def test_only_the_newest_notes_are_taken_up():
    """An agent cannot fill the relay with notes, or the snapshot with proposals."""
    known = fold(*(propose(n, f"way {n}") for n in range(1, PROPOSALS_KEPT + 50)))
    assert len(known.new_notes) == NOTES_A_RELAY
    assert known.new_notes[-1].text == f"way {PROPOSALS_KEPT + 49}"
    assert len(prune_projection(known).proposals) == PROPOSALS_KEPT


def test_a_claim_concerns_the_loop_as_it_was_opened_last():
    """A loop that is reopened later, or resolved, has no claim."""
    opened = LoopAdded(ts=NOON, seq=1, id="tax", text="File it")
    claimed = propose(2, "filed", "resolution", id="tax")
    known = fold(opened, claimed)
    assert known.loops["tax"].is_open
    assert find_claim(known.proposals, known.loops["tax"]) == claimed
    resolved = LoopResolved(ts=NOON + timedelta(seconds=3), seq=3, id="tax", reason="filed")
    known = fold(opened, claimed, resolved)
    assert find_claim(known.proposals, known.loops["tax"]) is None
    assert prune_projection(known).proposals == {}
    again = LoopAdded(ts=NOON + timedelta(seconds=4), seq=4, id="tax", text="File it")
    known = fold(opened, claimed, resolved, again)
    assert find_claim(known.proposals, known.loops["tax"]) is None


def test_a_loop_remembers_the_agent_that_opened_it():
    """A person who reopens the loop makes it their own; rewording does not."""
    opened = LoopAdded(ts=NOON, seq=1, id="tax", text="File it", by="trades")
    reworded = LoopAdded(ts=NOON + timedelta(seconds=1), seq=2, id="tax", text="File it now")
    assert fold(opened, reworded).loops["tax"].opened_by == "trades"
    closed = LoopResolved(ts=NOON + timedelta(seconds=2), seq=3, id="tax", reason="filed")
    again = LoopAdded(ts=NOON + timedelta(seconds=3), seq=4, id="tax", text="File it")
    assert fold(opened, closed, again).loops["tax"].opened_by == ""
