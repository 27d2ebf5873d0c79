"""The explanation of an agent's route."""

from datetime import UTC, datetime, timedelta

import pytest

from rekindle.documents.launches.route import Route
from rekindle.policy.routes.choose_route import RouteBlock, RouteChoice
from rekindle.policy.routes.explain_route import explain_route

NOW = datetime(2026, 4, 9, 12, 0, tzinfo=UTC)
A, B = Route("claude-code"), Route("codex", "own")
SOON, TOMORROW = NOW + timedelta(hours=2), NOW + timedelta(days=1)


@pytest.mark.parametrize(
    ("current", "blocks", "text"),
    [
        (None, {}, "claude-code"),
        (A, {B: RouteBlock("limit", SOON)}, "claude-code"),
        (B, {}, "codex/own; its next cycle uses claude-code again"),
        (
            B,
            {A: RouteBlock("limit", SOON)},
            "codex/own, because claude-code is blocked until 14:00: a usage limit",
        ),
        (
            B,
            {A: RouteBlock("hang", TOMORROW)},
            "codex/own, because claude-code is blocked until 2026-04-10 12:00: it hung",
        ),
        (
            B,
            {A: RouteBlock("auth", SOON)},
            "codex/own, because claude-code does not work: a person must log in",
        ),
    ],
)
def test_explanation(current, blocks, text):
    """It names the routes before the current one, and what blocks them."""
    assert explain_route(current, (A, B), RouteChoice(A, None, blocks), NOW) == text


def test_a_route_that_the_manifest_no_longer_has():
    """The next route counts then."""
    assert explain_route(Route("gemini"), (A, B), RouteChoice(B, None, {}), NOW).startswith("codex")
