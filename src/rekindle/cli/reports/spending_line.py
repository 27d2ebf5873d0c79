"""Print the spending of a run, and the source of its cost."""

from datetime import datetime
from typing import Any

from rekindle.documents.screens.agent_row import SpendFigures, render_tokens, render_usd
from rekindle.formats.counts import render_count
from rekindle.policy.settings.runtime_settings import SECONDS_AN_HOUR
from rekindle.policy.supervision import price_table


def render_spending(
    spend: SpendFigures, run: dict[str, Any], budget: dict[str, Any] | None, now: datetime
) -> str:
    """Return the run's spending, each amount with its limit."""
    cap = budget or {}
    hours = (now - run["run_began"]).total_seconds() / SECONDS_AN_HOUR if run["run_began"] else 0
    of_usd = f" of ${spend.usd_cap:g}" if spend.usd_cap else ""
    has_money = bool(spend.usd.value or of_usd)  # Programs without known prices have no cost.
    parts = []
    if usd := render_usd([spend.usd]):
        parts.append(f"{usd}{of_usd}")
    elif has_money:
        parts.append(f"unknown cost{of_usd}")
    parts.append(render_tokens([spend.tokens], spend.tokens_cap) or "0 tokens")
    if cap.get("hours"):
        parts.append(f"{hours:.1f} of {render_count(cap['hours'], 'hour')}")
    if spend.unpriced and has_money:
        parts.append(f"and {render_count(spend.unpriced, 'launch', 'launches')} of unknown cost")
    is_computed = spend.usd.source == "estimated" and spend.usd.value
    source = f" (from tokens, with list prices of {price_table.DATE})" if is_computed else ""
    return ", ".join(parts) + source
