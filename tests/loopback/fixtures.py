"""Fixtures for every test that runs a real agent CLI; a conftest imports those it needs."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from loopback import install
from loopback.anthropic import Anthropic
from loopback.cli import ClaudeSandbox
from loopback.model import Model
from loopback.namespace import Namespace, obstacle
from loopback.place import Place


@pytest.fixture
def network() -> Iterator[Namespace]:
    """A network of its own for every test: what one leaves behind cannot reach the next."""
    if reason := obstacle():
        _unavailable(reason)
    with Namespace() as namespace:
        yield namespace


@pytest.fixture
def model(network: Namespace) -> Iterator[Model]:
    """A model without a script; the test tells it what to `play`."""
    with Model(Anthropic(), network.listener) as served:
        yield served


@pytest.fixture(scope="session")
def claude_program() -> Path:
    """The pinned Claude Code."""
    try:
        return install.claude()
    except install.UnavailableError as error:
        _unavailable(str(error))


@pytest.fixture
def claude(
    claude_program: Path, model: Model, network: Namespace, tmp_path: Path
) -> Iterator[ClaudeSandbox]:
    """Claude Code, with this test's model and an empty home."""
    sandbox = ClaudeSandbox(claude_program, model=model, network=network, root=tmp_path / "claude")
    yield sandbox
    sandbox.close()


@pytest.fixture
def place(network: Namespace, tmp_path: Path) -> Iterator[Place]:
    """Processes of the test's own: nothing in there can see or signal any other."""
    with Place(network, tmp_path / "place") as made:
        yield made


def _unavailable(reason: str) -> NoReturn:
    # A skip that nobody reads would take these tests out of CI without a word.
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
