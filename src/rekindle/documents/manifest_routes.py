"""Keys of rekindle.yaml for where an agent's work can run: `accounts:` and `harness:` lists."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import msgspec

from rekindle.documents.manifest_keys import CommandLine
from rekindle.documents.manifest_pipelines import to_mapping
from rekindle.documents.manifest_quota import QuotaKeys
from rekindle.errors import ManifestError
from rekindle.formats.validation import describe_key as _doc
from rekindle.formats.yaml_lines import KeyPath, MarkedData

_HARNESSES = "harnesses"


class HarnessEntry(msgspec.Struct, frozen=True):
    """One CLI in an agent's `harness:` list."""

    use: Annotated[str, _doc("Agent CLI, as in `harness:`.")]
    persona: (
        Annotated[str, _doc("Persona for this CLI. Defaults to the agent's `persona:`.")] | None
    ) = None
    command: Annotated[
        CommandLine | None, _doc("Program that replaces this CLI, as in the agent's `command:`.")
    ] = None


class AccountEntry(msgspec.Struct, frozen=True):
    """An account of a CLI. Its folder contains the login, never this file."""

    harness: Annotated[str, _doc("Agent CLI that the account belongs to.")]
    config_dir: Annotated[
        str,
        _doc(
            "Configuration folder in which you logged the CLI in, such as `~/claude-work`: "
            "CLAUDE_CONFIG_DIR, CODEX_HOME or GEMINI_CLI_HOME. It begins with `~/` or `/`.",
            pattern=r"^~?/[^\x00]*$",
        ),
    ]
    quota: Annotated[
        QuotaKeys | None,
        _doc("How agents share the account, in addition to the project's `quota:`."),
    ] = None


def split_harness_lists(marked: MarkedData) -> list[KeyPath]:
    """Replace each `harness:` list by its first name, and move the list to `harnesses`.

    Return the place of each list, for the commands in it.
    """
    places: list[KeyPath] = []
    for name, entry in to_mapping(to_mapping(marked.data).get("agents")).items():
        path: KeyPath = ("agents", name)
        own = to_mapping(entry)
        if _HARNESSES in own:
            raise ManifestError(
                f"unknown key 'agents.{name}.{_HARNESSES}'",
                file=marked.file,
                line=marked.line((*path, _HARNESSES)),
                hint="write the list as `harness: [claude-code, codex]`",
            )
        listed = own.get("harness")
        if not isinstance(listed, list):
            continue
        items = [{"use": item} if isinstance(item, str) else item for item in listed]
        first = to_mapping(items[0]).get("use") if items else None
        if not isinstance(first, str):
            raise ManifestError(
                f"agent {name}: the list `harness:` does not name a CLI",
                file=marked.file,
                line=marked.line((*path, "harness")),
                hint="write `harness: [claude-code, codex]`, or items such as "
                "`{use: codex, persona: NAME}`",
            )
        _move_lines(marked, path)
        own["harness"], own[_HARNESSES] = first, items
        places += [(*path, _HARNESSES, number) for number in range(len(items))]
    return places


@contextmanager
def name_harness_lists() -> Iterator[None]:
    """Name the key `harness:` in errors about the items of a list, which are in `harnesses`."""
    try:
        yield
    except ManifestError as error:
        words = re.sub(rf"(agents\.[^.]+)\.{_HARNESSES}\b", r"\1.harness", error.message)
        hint = error.hint.replace(f", {_HARNESSES}", "").replace(f"`{_HARNESSES}`", "`harness`")
        raise ManifestError(words, file=error.file, line=error.line, hint=hint) from error


def _move_lines(marked: MarkedData, path: KeyPath) -> None:
    before = (*path, "harness")
    for place, line in list(marked.lines.items()):
        if place[: len(before)] == before and place != before:
            marked.lines[(*path, _HARNESSES, *place[len(before) :])] = line
    marked.lines[(*path, _HARNESSES)] = marked.lines[before]


def fill_items(
    items: list[HarnessEntry], persona: str | None, command: list[str] | None
) -> list[HarnessEntry]:
    """Return the items of a list with the agent's own keys where an item has none.

    The agent's `command:` replaces the program of its first CLI only.
    """
    first = items[0].use
    return [
        HarnessEntry(
            item.use,
            item.persona or persona,
            item.command or (command if item.use == first else None),
        )
        for item in items
    ]


def find_entry(data: Any, path: KeyPath) -> dict[str, Any]:
    """Return the mapping at a path of plain data, or an empty one."""
    for step in path:
        if isinstance(data, list) and isinstance(step, int):
            data = data[step]
        else:
            data = to_mapping(data).get(step)
    return to_mapping(data)
