"""Fixtures for every test that runs a real agent CLI; a conftest imports those it needs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

import prerequisites
from loopback import install
from loopback.anthropic import Anthropic
from loopback.cli import ClaudeSandbox
from loopback.codex_cli import CodexSandbox
from loopback.gemini import Gemini
from loopback.gemini_cli import GeminiSandbox
from loopback.model import Model
from loopback.namespace import Namespace, obstacle
from loopback.openai import OpenAI
from loopback.place import Place


@pytest.fixture
def network() -> Iterator[Namespace]:
    """Give every test its own network, so that leftovers cannot reach the next test."""
    require_namespaces()
    with Namespace() as namespace:
        yield namespace


@pytest.fixture
def model(network: Namespace) -> Iterator[Model]:
    """Start a model without a script; the test calls `play`."""
    with Model(Anthropic(), network.listener) as served:
        yield served


@pytest.fixture
def openai_model(network: Namespace) -> Iterator[Model]:
    """Start the same for Codex."""
    with Model(OpenAI(), network.listener) as served:
        yield served


@pytest.fixture
def gemini_model(network: Namespace) -> Iterator[Model]:
    """Start the same for Gemini CLI."""
    with Model(Gemini(), network.listener) as served:
        yield served


@pytest.fixture(scope="session")
def claude_program() -> Path:
    """Return the pinned Claude Code."""
    return installed(install.CLAUDE)


@pytest.fixture(scope="session")
def codex_program() -> Path:
    """Return the pinned Codex."""
    return installed(install.CODEX)


@pytest.fixture(scope="session")
def gemini_program() -> Path:
    """Return the pinned Gemini CLI."""
    return installed(install.GEMINI)


@pytest.fixture
def claude(
    claude_program: Path, model: Model, network: Namespace, tmp_path: Path
) -> Iterator[ClaudeSandbox]:
    """Return Claude Code with this test's model and an empty home."""
    sandbox = ClaudeSandbox(claude_program, model=model, network=network, root=tmp_path / "claude")
    yield sandbox
    sandbox.close()


@pytest.fixture
def codex(codex_program: Path, openai_model: Model, place: Place, tmp_path: Path) -> CodexSandbox:
    """Return Codex with this test's `openai_model` and an empty home, in this test's `place`."""
    root = tmp_path / "codex"
    return CodexSandbox(codex_program, model=openai_model, place=place, root=root)


@pytest.fixture
def gemini(
    gemini_program: Path, gemini_model: Model, place: Place, tmp_path: Path
) -> GeminiSandbox:
    """Return Gemini CLI with this test's `gemini_model`, `place`, and an empty home."""
    root = tmp_path / "gemini"
    return GeminiSandbox(gemini_program, model=gemini_model, place=place, root=root)


@pytest.fixture
def place(network: Namespace, tmp_path: Path) -> Iterator[Place]:
    """Give the test its own processes, which cannot see or signal any other."""
    with Place(network, tmp_path / "place") as made:
        yield made


def installed(package: install.Package) -> Path:
    try:
        return install.program(package)
    except install.UnavailableError as error:
        prerequisites.refuse(str(error))


def require_namespaces() -> None:
    """Skip or fail for tests that need more than one network."""
    prerequisites.require(obstacle())
