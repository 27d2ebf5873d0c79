"""Tests of the name of a route."""

import pytest

from rekindle.documents.launches.route import Route


@pytest.mark.parametrize(
    ("route", "text"),
    [(Route("codex"), "codex"), (Route("claude-code", "work"), "claude-code/work")],
)
def test_name(route: Route, text: str) -> None:
    """A route is named after its CLI, and after its account if it has one."""
    assert str(route) == text
