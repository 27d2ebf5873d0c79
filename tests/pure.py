"""Pure tests: the ones that `just unit` runs. None of them starts a process."""

import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[1]
UNIT: Final = ROOT / "tests/unit"
EXCLUDING: Final = ("heavy", "bench", "torture")
"""Markers that take a test of a pure layer out of `just unit`."""
_STARTS: Final = frozenset(
    {"subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
)

_running: Final[list[list[str]]] = []
"""For each guarded block that is running, the processes that it tried to start."""


class ProcessStartedError(AssertionError):
    """A pure test tried to start a process."""


def read_pure_layers() -> frozenset[str]:
    """Return the layers that import-linter keeps free of files, clocks and processes."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = settings["tool"]["importlinter"]["contracts"]
    (modules,) = [one["source_modules"] for one in contracts if one["type"] == "forbidden"]
    return frozenset(module.split(".")[1] for module in modules)


def is_pure(item: pytest.Item, layers: frozenset[str]) -> bool:
    """Tell whether a test belongs to `just unit`: by its folder, or by a marker of its own."""
    if any(item.get_closest_marker(name) for name in EXCLUDING):
        return False
    return item.get_closest_marker("pure") is not None or is_in_layers(item.path, layers)


def is_in_layers(path: Path, layers: frozenset[str]) -> bool:
    """Tell whether a test file is in the folder of one of these layers."""
    return path.is_relative_to(UNIT) and path.relative_to(UNIT).parts[0] in layers


@contextmanager
def refuse_processes() -> Iterator[None]:
    """Fail if the block starts a process, also if the code under test hides the error."""
    started: list[str] = []
    _running.append(started)
    try:
        yield
    finally:
        _running.pop()
    if started:
        raise ProcessStartedError(f"a pure test starts a process: {started}")


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if _running and event in _STARTS:
        _running[-1].append(f"{event} {arguments[:2]}")
        raise ProcessStartedError(_running[-1][-1])


sys.addaudithook(_audit)
