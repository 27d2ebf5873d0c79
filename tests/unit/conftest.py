"""The rules of pure tests, which `just unit` runs, and commands in the process of a test."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pure

LAYERS = pure.read_pure_layers()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Do not even import the tests of other layers when only pure ones are asked for."""
    if config.option.markexpr == "pure" and collection_path.parent == pure.UNIT:
        return True if collection_path.is_dir() and collection_path.name not in LAYERS else None
    return None


@pytest.hookimpl(tryfirst=True)  # before `-m` looks at the markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if pure.is_pure(item, LAYERS):
            item.add_marker(pytest.mark.pure)


@pytest.fixture(autouse=True)
def no_process(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a pure test that starts a process."""
    if request.node.get_closest_marker("pure") is None:
        yield
        return
    with pure.refuse_processes():
        yield


@pytest.fixture
def rekindle(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run a command in the current folder; returns its exit code, its output and its errors."""
    from rekindle.cli import main  # noqa: PLC0415 - the pure tests do without it

    def run(*arguments: object) -> tuple[int, str, str]:
        code = main.run([str(argument) for argument in arguments])
        printed = capfd.readouterr()
        return code, printed.out, printed.err

    return run
