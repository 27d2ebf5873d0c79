"""Notes before an agent is started: settings that are allowed, but may not be intended."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from rekindle.config import Project
from rekindle.documents.command_line import find_unexpanded
from rekindle.formats.identifiers import to_one_line
from rekindle.wiring.agent_environment import find_agent_folder


class StartNote(NamedTuple):
    """A note of `run` and `doctor` about an agent, and what to do about it."""

    words: str
    hint: str


def find_notes(project: Project, name: str) -> Iterator[StartNote]:
    """Yield the notes about the agent's commands."""
    yield from _find_literal_words(project, name)
    yield from _find_missing_until(project, name)


def _find_literal_words(project: Project, name: str) -> Iterator[StartNote]:
    """Yield a note for a word in a one-line command that a shell would have expanded."""
    for key in ("command", "until"):
        line = project.marked.command_lines.get(("agents", name, key), "")
        if word := find_unexpanded(line):
            script = msgspec.json.encode(line.strip()).decode()
            yield StartNote(
                f"no shell runs `{key}:`, so its program gets `{to_one_line(word)}` as it is "
                "written",
                f"write `{key}: [sh, -c, {script}]`, or quote it: '{to_one_line(word)}'",
            )


def _find_missing_until(project: Project, name: str) -> Iterator[StartNote]:
    """Yield a note if the program of `until:` is missing: the agent may have to write it."""
    words = project.manifest.agents[name].until
    program = words[0] if words else ""
    if "/" not in program or Path(program).is_absolute() or len(program.split()) > 1:
        return
    if not (find_agent_folder(project, name) / program).exists():
        yield StartNote(
            f"the program of `until:` does not exist: {to_one_line(program)}",
            "correct `until:` in rekindle.yaml, unless the agent is to write that file:"
            " until then, no cycle ends the run",
        )
