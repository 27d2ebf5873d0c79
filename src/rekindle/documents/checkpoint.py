"""The checkpoint: what a session hands to the next inside one cycle, in five sections."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from rekindle.documents import outline, schema
from rekindle.documents.outline import Outline
from rekindle.errors import DocumentError

SCHEMA = 1
TITLE = "Relay Checkpoint"


class Part(StrEnum):
    COMPLETED_WORK = "Completed Work"
    CURRENT_STATE = "Current State"
    MODIFIED_FILES = "Modified Files"
    REMAINING_WORK = "Remaining Work"
    RESUME_INSTRUCTIONS = "Resume Instructions"


class Checkpoint(msgspec.Struct, frozen=True):
    outline: Outline

    def content(self, part: Part) -> str:
        return self.outline.content(_place(self.outline, part)).strip()

    def with_content(self, part: Part, content: str) -> "Checkpoint":
        """This checkpoint with one section's text replaced; every other byte stays."""
        return parse(self.outline.replace_content(_place(self.outline, part), content).text)


def parse(data: bytes | str) -> Checkpoint:
    """A checkpoint with all five sections, or a DocumentError that names those missing."""
    parsed = outline.parse(schema.text_of(data, "checkpoint"))
    schema.check(parsed.head, "checkpoint", SCHEMA)
    missing = [part for part in Part if not _found(parsed, part)]
    if missing:
        raise DocumentError(
            "checkpoint",
            f"lacks {', '.join(missing)}",
            hint="a checkpoint has five sections: " + ", ".join(Part),
        )
    return Checkpoint(parsed)


def render(checkpoint: Checkpoint) -> str:
    return checkpoint.outline.text


def compose(parts: Mapping[Part, str]) -> Checkpoint:
    text = [schema.mark("checkpoint", SCHEMA), f"# {TITLE}\n"]
    text += [f"## {part}\n{parts.get(part, '').strip() or '- none'}\n" for part in Part]
    return parse("\n".join(text))


def _found(parsed: Outline, part: Part) -> list[int]:
    wanted = part.casefold()
    return [
        i
        for i, section in enumerate(parsed.sections)
        if (title := outline.words(section.title)).startswith(wanted)
        and not title[len(wanted) : len(wanted) + 1].isalnum()
    ]


def _place(parsed: Outline, part: Part) -> int:
    """Where a section stands: of several the shallowest, then the topmost."""
    return min(_found(parsed, part), key=lambda i: (parsed.sections[i].level, i))
