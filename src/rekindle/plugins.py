"""Find harnesses by name: built-in ones first, then those from installed plugins.

A plugin provides a harness through an entry point in the group `rekindle.harnesses`. Its value is a
module or object with the members of `ports.HarnessEssentials` and any of the optional members. Each
harness is imported only when it is needed.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from typing import cast

from rekindle.documents.events import AnyEvent
from rekindle.documents.hooks.hook_record import HookRecord
from rekindle.documents.hooks.hook_settings import HookFiles
from rekindle.documents.launches.launch_types import LaunchSpec
from rekindle.errors import PluginError, RekindleError
from rekindle.ports import (
    REQUIRED_MEMBERS,
    Harness,
    HarnessEssentials,
    complete_harness,
)

GROUP = "rekindle.harnesses"
ALIASES = {"claude": "claude-code"}
BUILT_IN = {
    "claude-code": "rekindle.harnesses.claude_code.claude_harness",
    "codex": "rekindle.harnesses.codex.codex_harness",
    "gemini": "rekindle.harnesses.gemini.gemini_harness",
    "command": "rekindle.harnesses.command_harness",
    "acp": "rekindle.harnesses.acp.acp_harness",
}
ACP_PRESETS = (
    *("opencode", "kilo", "qwen", "kimi", "copilot"),
    *("claude-acp", "codex-acp"),
)
"""Names of the agents that `acp` knows. Rekindle does not look for them, or list them as CLIs."""


_ANY_SESSION = "00000000-0000-4000-8000-000000000000"


class Harnesses(Mapping[str, Harness]):
    """All available harnesses."""

    def __init__(self) -> None:
        self._loaded: dict[str, Harness] = {}

    def __getitem__(self, name: str) -> Harness:
        name = ALIASES.get(name, name)
        if name not in self._loaded:
            self._loaded[name] = self._load_harness(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from BUILT_IN
        yield from (name for name in self._find_plugins if name not in BUILT_IN)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        canonical = ALIASES.get(str(name), str(name))
        known = canonical in BUILT_IN or canonical in ACP_PRESETS
        return known or canonical in self._find_plugins

    def list_names(self) -> str:
        """Return the names that a manifest can use, as a list for people."""
        return ", ".join((*self, *ACP_PRESETS))

    def working(self) -> list[Harness]:
        """Return the harnesses that can be loaded. A broken harness is reported when it is used."""
        harnesses = []
        for name in self:
            with suppress(PluginError):
                harnesses.append(self[name])
        return harnesses

    def list_hook_files(self) -> list[HookFiles]:
        """Return the hook files, program and settings folder for each CLI that supports hooks."""
        return [harness.HOOK_FILES for harness in self.working() if harness.HOOK_FILES]

    def _load_harness(self, name: str) -> Harness:
        if name in BUILT_IN:
            return complete_harness(cast(HarnessEssentials, import_module(BUILT_IN[name])))
        if name in ACP_PRESETS:
            from rekindle.harnesses.acp import acp_harness  # noqa: PLC0415 - most never need it

            return complete_harness(acp_harness.make_harness(name))
        try:
            plugin = self._find_plugins[name]()
        except KeyError:
            raise
        except Exception as error:
            raise PluginError(name, f"cannot be loaded: {error}") from error
        lacking = [member for member in REQUIRED_MEMBERS if not hasattr(plugin, member)]
        if lacking or name != plugin.NAME:
            reason = f"has no {', '.join(lacking)}" if lacking else f"calls itself {plugin.NAME!r}"
            raise PluginError(name, reason)
        return complete_harness(plugin)

    @cached_property
    def _find_plugins(self) -> dict[str, Callable[[], HarnessEssentials]]:
        # Search entry points only for other names, because reading package metadata is slow.
        from importlib.metadata import entry_points  # noqa: PLC0415 - see above

        return {entry_point.name: entry_point.load for entry_point in entry_points(group=GROUP)}


def find_program(harness: Harness) -> str:
    """Return the program that a harness starts by default, or "" if there is none."""
    if harness.HOOK_FILES is not None:
        return harness.HOOK_FILES.program
    if harness.PROGRAM:
        return harness.PROGRAM
    try:
        return harness.command(LaunchSpec(session=_ANY_SESSION)).argv[0]
    except RekindleError:
        return ""


class HookReaders(Mapping[str, Callable[[HookRecord], AnyEvent | None]]):
    """The hook parsers for all harnesses."""

    def __init__(self, harnesses: Harnesses) -> None:
        self._harnesses = harnesses

    def __getitem__(self, name: str) -> Callable[[HookRecord], AnyEvent | None]:
        return self._harnesses[name].read_hook

    def __iter__(self) -> Iterator[str]:
        return iter(self._harnesses)

    def __len__(self) -> int:
        return len(self._harnesses)

    def __contains__(self, name: object) -> bool:
        return name in self._harnesses
