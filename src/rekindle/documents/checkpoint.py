"""The checkpoint: the state that one session hands to the next within a cycle, in five sections."""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from rekindle.errors import DocumentError
from rekindle.formats import (
    outline,
    schema_mark,
)
from rekindle.formats.outline import Outline

SCHEMA = 1
TITLE = "Relay Checkpoint"


class CheckpointSection(StrEnum):
    COMPLETED_WORK = "Completed Work"
    CURRENT_STATE = "Current State"
    MODIFIED_FILES = "Modified Files"
    REMAINING_WORK = "Remaining Work"
    RESUME_INSTRUCTIONS = "Resume Instructions"


class Checkpoint(msgspec.Struct, frozen=True):
    outline: Outline

    def content(self, part: CheckpointSection) -> str:
        return self.outline.content(_find_governing(self.outline, part)).strip()

    def with_content(self, part: CheckpointSection, content: str) -> "Checkpoint":
        """Return a copy with this section's text replaced and all other bytes unchanged."""
        return parse(
            self.outline.replace_content(_find_governing(self.outline, part), content).text
        )


def parse(data: bytes | str) -> Checkpoint:
    """Parse a checkpoint. If sections are missing, raise a DocumentError that names them."""
    parsed = outline.parse(schema_mark.decode_text(data, "checkpoint"))
    schema_mark.check_mark(parsed.head, "checkpoint", SCHEMA)
    missing = [part for part in CheckpointSection if not _find_places(parsed, part)]
    if missing:
        raise DocumentError(
            "checkpoint",
            f"lacks {', '.join(missing)}",
            hint="a checkpoint needs five sections: " + ", ".join(CheckpointSection),
        )
    return Checkpoint(parsed)


def render(checkpoint: Checkpoint) -> str:
    return checkpoint.outline.text


def compose(parts: Mapping[CheckpointSection, str]) -> Checkpoint:
    text = [schema_mark.render_mark("checkpoint", SCHEMA), f"# {TITLE}\n"]
    text += [
        f"## {part}\n{parts.get(part, '').strip() or '- none'}\n" for part in CheckpointSection
    ]
    return parse("\n".join(text))


def _find_places(parsed: Outline, part: CheckpointSection) -> list[int]:
    wanted_title = part.casefold()
    return [
        i
        for i, section in enumerate(parsed.sections)
        if (title := outline.normalize_title(section.title)).startswith(wanted_title)
        and not title[len(wanted_title) : len(wanted_title) + 1].isalnum()
    ]


def _find_governing(parsed: Outline, part: CheckpointSection) -> int:
    """Return the index of a section. If it occurs twice, use the first one at the highest level."""
    return min(_find_places(parsed, part), key=lambda i: (parsed.sections[i].level, i))
