"""A revision: one committed relay, recorded as a commit in the audit trail.

The subject is the Next Action; the last paragraph identifies the event in the log:

    Implement POST /profile with validation

    Rekindle-Seq: 412
    Rekindle-Gen: 3
    Rekindle-Sha256: 9f86d0…
    Rekindle-By: agent
"""

import re

import msgspec

from rekindle.documents.events import RelayCommitted
from rekindle.formats.identifiers import to_one_line
from rekindle.thresholds.texts import AUTHOR_CHARACTERS

_LAST_PARAGRAPH = re.compile(
    r"(?:\A|\n\n)Rekindle-Seq: (\d{1,18})\nRekindle-Gen: (\d{1,18})\n"
    r"Rekindle-Sha256: ([0-9a-f]{64})\nRekindle-By: [^\n]*\n*\Z"
)


class AuditRevision(msgspec.Struct, frozen=True):
    """The log event behind a commit in the audit trail."""

    seq: int
    gen: int
    sha256: str

    def is_of(self, event: RelayCommitted) -> bool:
        return (self.seq, self.sha256) == (event.seq, event.sha256)


def render(event: RelayCommitted) -> str:
    subject = to_one_line(event.headline) or "A relay without a Next Action"
    # The relay's author chose this text. On one line, it cannot be mistaken for a trailer.
    by = to_one_line(event.by, AUTHOR_CHARACTERS)
    return (
        f"{subject}\n\n"
        f"Rekindle-Seq: {event.seq}\n"
        f"Rekindle-Gen: {event.gen}\n"
        f"Rekindle-Sha256: {event.sha256}\n"
        f"Rekindle-By: {by}\n"
    )


def parse(message: str) -> AuditRevision | None:
    """Return the revision in a commit message, or None if Rekindle did not write the commit."""
    match = _LAST_PARAGRAPH.search(message)
    return AuditRevision(int(match[1]), int(match[2]), match[3]) if match else None
