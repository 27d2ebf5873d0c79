"""Harnesses by name: ours first, then what other packages bring; each imported when it is needed.

A package brings one by an entry point of the group `rekindle.harnesses`, whose value is a module or
an object with the members of `ports.Essentials`, and any of the optional ones.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from importlib import import_module
from typing import cast

from rekindle.documents.event import AnyEvent
from rekindle.documents.hookline import HookLine
from rekindle.documents.launch import Start
from rekindle.errors import PluginError, RekindleError
from rekindle.ports import REQUIRED, Essentials, Harness, complete

GROUP = "rekindle.harnesses"
ALIASES = {"claude": "claude-code"}
BUILT_IN = {
    "claude-code": "rekindle.harnesses.claude_code",
    "codex": "rekindle.harnesses.codex",
    "gemini": "rekindle.harnesses.gemini",
    "command": "rekindle.harnesses.command",
}


_ANY_SESSION = "00000000-0000-4000-8000-000000000000"


class Harnesses(Mapping[str, Harness]):
    """Every harness that there is."""

    def __init__(self) -> None:
        self._loaded: dict[str, Harness] = {}

    def __getitem__(self, name: str) -> Harness:
        name = ALIASES.get(name, name)
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        yield from BUILT_IN
        yield from (name for name in self._plugged_in if name not in BUILT_IN)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        known = ALIASES.get(str(name), str(name))
        return known in BUILT_IN or known in self._plugged_in

    def working(self) -> list[Harness]:
        """Those that can be loaded: a broken plugin is the matter of who uses it."""
        found = []
        for name in self:
            with suppress(PluginError):
                found.append(self[name])
        return found

    def _load(self, name: str) -> Harness:
        if name in BUILT_IN:
            return complete(cast(Essentials, import_module(BUILT_IN[name])))
        try:
            found = self._plugged_in[name]()
        except KeyError:
            raise
        except Exception as error:
            raise PluginError(name, f"cannot be loaded: {error}") from error
        lacking = [word for word in REQUIRED if not hasattr(found, word)]
        if lacking or name != found.NAME:
            what = f"has no {', '.join(lacking)}" if lacking else f"calls itself {found.NAME!r}"
            raise PluginError(name, what)
        return complete(found)

    @cached_property
    def _plugged_in(self) -> dict[str, Callable[[], Essentials]]:
        # Looked for only when a name is not ours: reading what is installed takes a while.
        from importlib.metadata import entry_points  # noqa: PLC0415 - see above

        return {one.name: one.load for one in entry_points(group=GROUP)}


def find_program(harness: Harness) -> str:
    """Return the program that a harness starts by itself; empty: it has none."""
    if harness.HOOK_FILES is not None:
        return harness.HOOK_FILES.program
    try:
        return harness.command(Start(session=_ANY_SESSION)).argv[0]
    except RekindleError:
        return ""


class Readers(Mapping[str, Callable[[HookLine], AnyEvent | None]]):
    """Who reads which harness's hooks."""

    def __init__(self, harnesses: Harnesses) -> None:
        self._harnesses = harnesses

    def __getitem__(self, name: str) -> Callable[[HookLine], AnyEvent | None]:
        return self._harnesses[name].read_hook

    def __iter__(self) -> Iterator[str]:
        return iter(self._harnesses)

    def __len__(self) -> int:
        return len(self._harnesses)

    def __contains__(self, name: object) -> bool:
        return name in self._harnesses
