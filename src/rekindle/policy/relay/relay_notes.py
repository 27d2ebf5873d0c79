"""Add an agent's notes to its relay: decisions and failed approaches that it proposed.

Each note becomes one list item. The text of a note cannot start a heading, a fence or another
block, so a note never changes the structure of the relay.
"""

import re
from collections.abc import Sequence

from rekindle.documents import relay as relays
from rekindle.documents.events import Proposal, ProposalMade
from rekindle.documents.relay import Relay, RelayField
from rekindle.formats.identifiers import strip_invisible, to_one_line

_FIELDS: dict[Proposal, RelayField] = {
    "decision": RelayField.KEY_DECISIONS,
    "failed approach": RelayField.FAILED_APPROACHES,
}
_BLOCK_START = re.compile(r"(?:[#<>|=*+\-\s\[]|`{3,}|~{3,}|\d+[.)]\s)+")
"""Beginning of a text that markdown would read as a block, a checkbox or another list item."""


def merge_notes(
    relay: Relay, notes: Sequence[ProposalMade], previous: Relay | None = None
) -> Relay:
    """Return the relay with the notes that it lacks.

    If the relay has no section for failed approaches, its author forgot them. They are then carried
    over from the previous relay.
    """
    field = RelayField.FAILED_APPROACHES
    if previous is not None and not relay.places(field):
        for place in previous.places(field)[:1]:
            carried = previous.outline.sections[place].body
            if not relays.is_placeholder(carried):
                relay = relay.with_items(field, carried)
    for about, field in _FIELDS.items():
        present = _normalize(relay.content(field) or "")
        texts = {note.text: note for note in notes if note.about == about}
        new = [note for note in texts.values() if _normalize(_clean_text(note)) not in present]
        if new:
            relay = relay.with_items(field, "\n".join(map(_render_item, new)))
    return relay


def compose_notes(notes: Sequence[ProposalMade]) -> Relay | None:
    """Return a relay that contains only the notes, or None if there are none."""
    fields = {field: "" for about, field in _FIELDS.items() if _has_any(notes, about)}
    return merge_notes(relays.compose(fields), notes) if fields else None


def _has_any(notes: Sequence[ProposalMade], about: str) -> bool:
    return any(note.about == about for note in notes)


def _render_item(note: ProposalMade) -> str:
    return f"- {_clean_text(note)} ({note.ts:%Y-%m-%d})"


def _clean_text(note: ProposalMade) -> str:
    line = to_one_line(strip_invisible(note.text))
    start = _BLOCK_START.match(line)
    return line[start.end() :] if start else line


def _normalize(text: str) -> str:
    return " ".join(text.casefold().split())
