"""Find environment variables that an agent may need but does not get.

An agent gets only variables on an allow-list. If the project's files mention another variable, or
its name looks like a credential, the agent probably needs it. A note about it saves the user from
searching for the cause.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from rekindle.config import Project
from rekindle.policy.progress.artefacts import may_hold_artefacts
from rekindle.policy.setup import environment
from rekindle.thresholds.screens import (
    WITHHELD_DEPTH,
    WITHHELD_FILE_BYTES,
    WITHHELD_FILES,
    WITHHELD_NAMES,
)
from rekindle.wiring.agent_dir_list import find_agent_dir
from rekindle.wiring.agent_routes import list_route_harnesses
from rekindle.wiring.open_store import HARNESSES

_BUILT = {"target", "dist", "build"}
_VARIABLE = re.compile(rb"\b[A-Z][A-Z0-9_]{2,}\b")


def find_withheld(project: Project, name: str) -> list[str]:
    """Return the variables that an agent probably needs. Those in project files come first."""
    entry = project.manifest.agents[name]
    handled = set(entry.env or {})
    for harness in list_route_harnesses(project, name).values():
        handled |= {*harness.BLOCKED_VARIABLES}
        handled |= environment.select_variables(
            os.environ, harness.PASSED_PREFIXES, harness.BLOCKED_VARIABLES
        ).keys()
    if entry.harness not in HARNESSES:
        return []
    withheld = environment.list_withheld(os.environ, handled)
    folder = find_agent_dir(project, name)
    return environment.select_missed(withheld, _find_mentioned(folder) if withheld else frozenset())


def explain_withheld(name: str, missed: Sequence[str]) -> str:
    """Return a note about withheld variables and how to pass them on."""
    more = len(missed) - WITHHELD_NAMES
    others = f" and {more} more" if more > 0 else ""
    return (
        f"{name} does not get {', '.join(missed[:WITHHELD_NAMES])}{others} from your environment"
        f" (→ to pass one on, add `env: {{{missed[0]}: ${missed[0]}}}` to the agent)"
    )


def _find_mentioned(folder: Path) -> frozenset[str]:
    """Return the words in the project's files that look like variable names."""
    words: set[bytes] = set()
    for path in _list_files(folder):
        try:
            if path.stat().st_size <= WITHHELD_FILE_BYTES:
                words.update(_VARIABLE.findall(path.read_bytes()))
        except OSError:
            continue  # skip unreadable files
    return frozenset(word.decode() for word in words)


def _list_files(folder: Path) -> Iterator[Path]:
    """Yield some regular files near the top of the folder, including `.env.example`."""
    left = WITHHELD_FILES
    for place, folders, names in os.walk(folder):
        depth = len(Path(place).relative_to(folder).parts)
        folders[:] = sorted(
            name
            for name in folders
            if depth < WITHHELD_DEPTH and name not in _BUILT and may_hold_artefacts(name)
        )
        for name in sorted(names):
            path = Path(place, name)
            if path.is_symlink() or not path.is_file():
                continue  # reading a pipe would block
            yield path
            left -= 1
            if not left:
                return
