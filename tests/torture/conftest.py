"""What several sweeps share."""

import compileall
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import rekindle
from loopback.place import Place
from torture.clis import Cli
from torture.test_kill import prepared

__all__ = ["prepared"]

_FIXTURES = {
    "claude-code": ("claude", "model"),
    "codex": ("codex", "openai_model"),
    "gemini": ("gemini", "gemini_model"),
}


@pytest.fixture(scope="session", autouse=True)
def compiled() -> None:
    """Compile everything first, so that a command makes the same system calls each time.

    In a fresh clone a program that another test starts would write a module's bytecode between two
    trials, and the call that a trial breaks would be another one than the one that was counted.
    """
    assert compileall.compile_dir(Path(rekindle.__file__).parent, quiet=1)


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is such a place: no fsync need wait for a disk there."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made there
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        yield Path(folder)


@pytest.fixture
def cli(request: pytest.FixtureRequest, place: Place) -> Cli:
    """The CLI that the test's parameter names, in a sandbox and a place of its own."""
    sandbox, scripted = map(request.getfixturevalue, _FIXTURES[request.param])
    return Cli(request.param, sandbox, scripted, place)
