"""Fixtures of all tests: a project in an empty folder, and a clock that the test moves."""

import compileall
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import settings as hypothesis_settings

import rekindle
from own_user_folder import isolate_user_folder
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore

pytest_plugins = ["prerequisites", "starved", "chromium", "loopback.fixtures", "fleet.engine"]
"""The marker `needs`, timings on a starved machine, and fixtures for a browser, the real agent
CLIs, the models behind them, and the real engine of a fleet.
"""

hypothesis_settings.register_profile("steady", derandomize=True, deadline=None, max_examples=40)
if not os.environ.get("REKINDLE_TORTURE"):
    # CI draws the same examples each time, so that only a change can break it; `just torture` draws
    # new ones.
    hypothesis_settings.load_profile("steady")


def pytest_configure(config: pytest.Config) -> None:
    """Give the tests a user folder of their own, for as long as they run.

    Its path depends on the user id alone, so that no variable could point a program under test
    elsewhere: a mount that only this process and its children see takes its place.
    """
    if os.getuid() == 0 and sys.platform == "linux" and not hasattr(config, "_has_user_folder"):
        config._has_user_folder = True
        isolate_user_folder()
    if "PYTEST_XDIST_WORKER" not in os.environ:
        compile_package()


def compile_package() -> None:
    """Write the bytecode of the package before any test starts a command.

    Each command reads it instead of compiling its modules, which is half of its start. And each
    makes the same system calls: a sweep that breaks them one by one counts them beforehand.
    """
    assert compileall.compile_dir(Path(rekindle.__file__).parent, quiet=1)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Rerun failed measurements once; a failure of any other test is final."""
    if not os.environ.get("REKINDLE_MEASURES_AGAIN"):
        return
    for item in session.items:
        if item.get_closest_marker("invariant") and not item.get_closest_marker("timing"):
            pytest.exit(f"{item.nodeid} does not hold: it is not tried again", returncode=1)


RELAY = """\
## Current Phase
Implementation

## Key Decisions Made
- Files over a database: nothing to keep alive (2026-04-09)

## Next Action
Write the parser

## Open Questions
- Which encoding?
"""


class ManualClock:
    """A clock that moves only when the test says so."""

    def __init__(self) -> None:
        self.time = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.time

    def forward(self, **amount: float) -> None:
        self.time += timedelta(**amount)


def put_clis_on_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a program with the name of each agent CLI at the end of the PATH."""
    for name in ("claude", "codex", "gemini"):
        (folder / name).write_text("#!/bin/sh\nexit 1\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{os.environ.get('PATH', os.defpath)}{os.pathsep}{folder}")


@pytest.fixture(autouse=True)
def isolated_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give every command under test a home without the developer's settings."""
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    home = tmp_path_factory.getbasetemp() / "isolated-home"
    home.mkdir(exist_ok=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        patch.setenv("XDG_CACHE_HOME", cache)  # the pinned agent CLI is installed there
        patch.setenv("REKINDLE_TRUST", "1")  # most tests write a manifest by hand
        for name in ("CLAUDE_CONFIG_DIR", "XDG_DATA_HOME"):
            patch.delenv(name, raising=False)
        yield home


@pytest.fixture
def in_memory(tmp_path: Path) -> Iterator[Path]:
    """Return a folder in memory if the host has one, where fsync does not wait for a disk."""
    memory = Path("/dev/shm")  # noqa: S108 - a folder of its own is made there
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        yield Path(folder)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def open_store(tmp_path: Path, clock: ManualClock) -> Callable[..., FileStore]:
    """Open the same folder a second time, as another process or another host would."""

    def opened(host: str = "here", settings: Settings | None = None) -> FileStore:
        return FileStore(tmp_path, host=host, settings=settings or Settings(), clock=clock)

    return opened


@pytest.fixture
def store(open_store: Callable[..., FileStore]) -> FileStore:
    made = open_store()
    made.create("trades")
    return made
