"""Explain on which route an agent works, and why not on an earlier one."""

from collections.abc import Sequence
from datetime import datetime

from rekindle.documents.launches.route import Route
from rekindle.policy.exits.stop_reasons import STOP_REASONS
from rekindle.policy.routes.choose_route import RouteBlock, RouteChoice


def explain_route(
    current: Route | None, routes: Sequence[Route], choice: RouteChoice, now: datetime
) -> str:
    """Return the route of the agent's last launch, and what blocks each route before it.

    `now` is in the time zone of the result.
    """
    shown = current if current in routes else choice.route
    before = routes[: routes.index(shown)]
    blocked = [
        f"{route} {explain_block(choice.blocks[route], now)}"
        for route in before
        if route in choice.blocks
    ]
    free = [str(route) for route in before if route not in choice.blocks]
    if blocked:
        return f"{shown}, because {', '.join(blocked)}"
    return f"{shown}; its next cycle uses {free[0]} again" if free else str(shown)


def explain_block(block: RouteBlock, now: datetime) -> str:
    """Return until when a route is blocked and why, as the end of a sentence about the route."""
    reason = STOP_REASONS[block.why].text
    if block.needs_person:
        return f"does not work: {reason}"
    until = block.until.astimezone(now.tzinfo)
    style = "%H:%M" if until.date() == now.date() else "%Y-%m-%d %H:%M"
    return f"is blocked until {until:{style}}: {reason}"
