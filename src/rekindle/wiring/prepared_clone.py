"""Run an agent's `prepare:` command in its clone on a fleet host.

A clone on a new host lacks everything that git ignores, such as installed dependencies. The command
restores it. The result stays in the clone, and the command runs again only if the command or one of
the agent's lock files has changed.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from rekindle.config import Project
from rekindle.errors import UnsafePathError
from rekindle.formats.json_codec import hash_bytes
from rekindle.system.files import durable_files
from rekindle.system.git import own_configuration
from rekindle.wiring.agent_dir_list import find_agent_dir

LOCK_FILES = (
    *("package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock"),
    *("uv.lock", "poetry.lock", "Pipfile.lock", "pdm.lock", "requirements.txt"),
    *("Cargo.lock", "go.sum", "Gemfile.lock", "composer.lock", "mix.lock", "flake.lock"),
)
"""Files in the agent's folder that determine the dependencies."""
_MARK = "rekindle-prepared"


def make_preparing_opener(
    project: Project, name: str
) -> Callable[[Callable[[], None], bool], None] | None:
    """Return the function that prepares an agent's clone, or None if there is no need for it."""
    command = project.manifest.agents[name].prepare
    folder = find_agent_dir(project, name)
    if not command or not project.mirrors:
        return None

    def open_clone(prepare: Callable[[], None], is_first: bool) -> None:  # noqa: FBT001 - a port
        top = own_configuration.find_top(folder)
        if top is None:
            return
        mark = top / ".git" / _MARK
        prepared = durable_files.read_bytes(mark, root=top)
        # Within a cycle, the agent itself may have changed a lock file.
        if prepared and (not is_first or prepared == hash_state(command, folder).encode()):
            return
        durable_files.remove_file(mark, root=top)
        prepare()
        # The command may have changed a lock file.
        durable_files.replace_file(mark, hash_state(command, folder).encode(), root=top)

    return open_clone


def hash_state(command: Sequence[str], folder: Path) -> str:
    """Return a hash of the command and of the lock files in a folder."""
    parts = [hash_bytes(word.encode()) for word in command]
    for name in LOCK_FILES:
        try:
            data = durable_files.read_bytes(folder / name)
        except UnsafePathError:
            data = None  # a link, or another kind of file
        parts.append(hash_bytes(data) if data is not None else "")
    return hash_bytes("\n".join(parts).encode())
