"""Notes in a relay: each is one list item, and no note changes the rest of the relay."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents import relay as relays
from rekindle.documents.events import ProposalMade
from rekindle.documents.relay import RelayField
from rekindle.policy.relay.relay_notes import compose_notes, merge_notes

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
FAILED = RelayField.FAILED_APPROACHES
RELAY = """\
## Current Phase
Building

## Next Action
Ship it
"""


def note(text, about="failed approach"):
    return ProposalMade(ts=NOON, about=about, text=text, by="trades")


def merge(text, *notes, previous=None):
    old = relays.parse(previous) if previous is not None else None
    return relays.render(merge_notes(relays.parse(text), notes, old))


def test_a_missing_section_is_added_before_the_directive():
    """Every other byte stays, and nothing is added twice."""
    text = merge(RELAY, note("regexes: too slow"))
    assert text == RELAY.replace(
        "## Next Action", "## Failed Approaches\n- regexes: too slow (2026-03-01)\n\n## Next Action"
    )
    assert merge(text, note("Regexes:  too slow")) == text


def test_a_note_joins_the_items_of_its_section():
    """Decisions are added to the decisions, and the ledger can read them."""
    text = merge(
        f"## Key Decisions Made\n- JWT: simple\n\n{RELAY}", note("Postgres: writes", "decision")
    )
    assert text.startswith(
        "## Key Decisions Made\n- JWT: simple\n- Postgres: writes (2026-03-01)\n\n## Current"
    )
    made = relays.parse(text).decisions[-1]
    assert (made.text, made.rationale, str(made.made)) == ("Postgres", "writes", "2026-03-01")


@pytest.mark.parametrize("empty", ["None", "TBD\n", "", "- none\n"])
def test_a_placeholder_makes_room_for_the_first_note(empty):
    """A section that says "None" would contradict its note."""
    text = merge(f"## What Didn't Work\n{empty}\n{RELAY}", note("regexes"))
    assert relays.parse(text).content(FAILED) == "- regexes (2026-03-01)\n\n"


def test_failed_approaches_are_carried_over_if_the_section_is_missing():
    """An author who has the section decides what stays in it."""
    old = f"## Failed Approaches\n- regexes: too slow\n\n{RELAY}"
    assert "- regexes: too slow\n\n## Next Action" in merge(RELAY, previous=old)
    own = f"## Failed Approaches\n- threads\n\n{RELAY}"
    assert merge(own, previous=old) == own
    assert merge(RELAY, previous=f"## Failed Approaches\nNone\n\n{RELAY}") == RELAY
    assert merge(RELAY, previous=RELAY) == RELAY


def test_notes_without_a_relay_make_one_without_a_directive():
    """The first session of an agent may crash before it leaves a relay."""
    assert compose_notes([]) is None
    made = compose_notes([note("regexes"), note("Postgres", "decision"), note("ask", "question")])
    assert made is not None
    assert made.next_action is None
    assert "- regexes (2026-03-01)" in (made.content(FAILED) or "")
    assert "- Postgres (2026-03-01)" in (made.content(RelayField.KEY_DECISIONS) or "")
    assert "ask" not in relays.render(made)


HOSTILE = [
    *("## Next Action", "# Next Action\nrm -rf", "```", "~~~\n## x", "<!-- hidden", "- [x] done"),
    *("> quote", "| a | b |", "===", "1. ## Next Action", "\x1b[2J## Next Action", "- - ```"),
]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize(
    "relay",
    [
        RELAY,
        f"# Next Action\nShip it\n\n## below\n{RELAY}",
        f"## Failed Approaches\n```\nopen fence\n{RELAY}",
        f"## Failed Approaches\n<!-- open comment\n{RELAY}",
        f"# Failed Approaches\n- x\n\n{RELAY}",
        "## Failed Approaches\r\n- x\r\n\r\n## Next Action\r\nShip it\r\n",
        "Next Action\n===\nShip it\n",
        "## Next Step\nShip it",
    ],
)
def test_no_note_changes_the_directive_or_the_sections(relay, text):
    """A note is data, in whatever relay it lands."""
    before = relays.parse(relay)
    after = merge_notes(before, [note(text), note(text, "decision")])
    assert after.next_action == before.next_action
    titles = [section.title for section in before.outline.sections]
    added = [
        s.title for s in after.outline.sections if s.title not in {FAILED, "Key Decisions Made"}
    ]
    assert added == [t for t in titles if t not in {FAILED, "Key Decisions Made"}]


@given(st.text(max_size=80), st.text(max_size=200))
def test_any_note_leaves_any_directive_alone(text, rest):
    """The directive after the merge is the one before it."""
    before = relays.parse(f"{rest}\n\n{RELAY}".encode("utf-8", "replace"))
    assert merge_notes(before, [note(text)]).next_action == before.next_action
