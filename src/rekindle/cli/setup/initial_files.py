"""Files that `init` and `adopt` write next to the manifest."""

from pathlib import Path

from rekindle.documents import manifest
from rekindle.errors import translate_os_errors
from rekindle.policy.settings.manifest_schema import render_schema
from rekindle.policy.settings.runtime_settings import AgentDefaults
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.system.files import durable_files

_PROMPT_MODE = 0o644


def write_prompt(folder: Path, task: str | None = None) -> list[str]:
    """Write the task, or a template if there is no file yet. Return a message if it was written."""
    path = folder / AgentDefaults().prompt
    if task is not None:
        durable_files.replace_file(path, f"{task.strip()}\n".encode(), mode=_PROMPT_MODE)
        return [f"wrote {path.name}: the agent's task"]
    with translate_os_errors(path):
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(manifest.DEFAULT_PROMPT)
        except FileExistsError:
            return []
    return [f"wrote {path.name}: describe the agent's task there"]


def write_summarizer(folder: Path) -> None:
    """Write the default instructions for summaries, unless the file exists."""
    root = RekindleFolder(folder)
    root.make()
    path = root.summarizer
    durable_files.make_folder(path.parent)
    if not durable_files.path_exists(path):
        durable_files.replace_file(path, manifest.DEFAULT_SUMMARIZER.encode())


def write_schema(folder: Path) -> None:
    """Write the JSON Schema that the manifest refers to, unless it is up to date."""
    path = RekindleFolder(folder).schema
    schema = render_schema()
    if durable_files.read_bytes(path) != schema:
        durable_files.replace_file(path, schema)
