"""Prerequisites of tests that not every machine has, such as a program or a system call."""

import os
import shutil
from typing import NoReturn

import pytest


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or fail in CI, a test that is marked with an obstacle."""
    for marker in item.iter_markers("needs"):
        require(*marker.args)


def require(obstacle: str | None) -> None:
    """Skip the test if there is an obstacle; fail in CI."""
    if obstacle:
        refuse(obstacle)


def refuse(obstacle: str) -> NoReturn:
    """Skip a test that cannot run here; fail in CI, where an unnoticed skip would remove it."""
    print(obstacle)
    if os.environ.get("CI"):
        pytest.fail(obstacle)
    pytest.skip(obstacle)


def needs(obstacle: str | None) -> pytest.MarkDecorator:
    """Return a marker for tests that cannot run if there is an obstacle."""
    return pytest.mark.needs(obstacle)


def needs_program(name: str) -> pytest.MarkDecorator:
    return needs(None if shutil.which(name) else f"{name} is not installed")
