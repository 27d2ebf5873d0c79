"""A recorded night, the server that shows it, and a server without protection beside it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from recorded_night import write_night
from rekindle.system import clock
from rekindle.system.files import user_folder
from ui_server import PlainServer, UiServer, serve_pages, serve_plainly, supervise_elsewhere


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the folder of a project whose night has just ended, for the tests of one module."""
    shutil.rmtree(user_folder.make_user_folder() / "projects", ignore_errors=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REKINDLE_TRUST", "1")
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        folder = write_night(tmp_path_factory.mktemp("night") / "shop", clock.read_clock())
        with supervise_elsewhere(folder):
            yield folder


@pytest.fixture(scope="module")
def ui(night: Path) -> Iterator[UiServer]:
    with serve_pages(night) as server:
        yield server


@pytest.fixture
def plain() -> Iterator[PlainServer]:
    with serve_plainly() as server:
        yield server
