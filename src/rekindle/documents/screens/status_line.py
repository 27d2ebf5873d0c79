"""One line about an agent, for the status line of a CLI."""

from typing import Any

import msgspec

from rekindle.documents.screens.agent_row import AgentRow, Figure
from rekindle.formats.counts import render_count
from rekindle.formats.identifiers import to_one_line

_SEPARATOR = " · "


class CliFacts(msgspec.Struct, frozen=True):
    """Facts about a session that the CLI passes to its status line."""

    folder: str = ""
    """Folder of the session's project."""
    model: str = ""
    window_percent: float | None = None
    usd: float | None = None
    """Cost of the session."""


def parse_facts(data: bytes) -> CliFacts:
    """Parse what Claude Code writes to its status line. Unknown text has no facts."""
    try:
        fields = msgspec.json.decode(data, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return CliFacts()
    folder = _find(fields, "workspace", "project_dir") or _find(fields, "cwd")
    model = _find(fields, "model", "display_name")
    window, usd = (
        _find(fields, "context_window", "used_percentage"),
        _find(fields, "cost", "total_cost_usd"),
    )
    return CliFacts(
        folder if isinstance(folder, str) else "",
        to_one_line(model) if isinstance(model, str) else "",
        _read_number(window),
        _read_number(usd),
    )


def _find(fields: Any, *names: str) -> Any:
    for name in names:
        fields = fields.get(name) if isinstance(fields, dict) else None
    return fields


def _read_number(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def render_agent(row: AgentRow, facts: CliFacts) -> str:
    """Return the agent's state, cycle, window, questions and spending."""
    cycle = f"cycle {row.cycle}" if row.cycle else ""
    done = f" of {row.cycles_of}" if cycle and row.cycles_of else ""
    parts = (
        f"{row.agent}: {row.state}",
        f"{cycle}{done}",
        _render_window(facts.window_percent, row.window.percent),
        render_count(row.open_questions, "question") if row.open_questions else "",
        _render_usd(facts.usd, row),
    )
    return _SEPARATOR.join(part for part in parts if part)


def render_agents(rows: list[AgentRow], facts: CliFacts) -> str:
    """Return the number of agents and what they ask, for a folder of several agents."""
    asked = sum(row.open_questions for row in rows)
    waiting = [row.agent for row in rows if row.state in {"needs you", "broken"}]
    parts = (
        render_count(len(rows), "agent"),
        f"{waiting[0]} needs you" if len(waiting) == 1 else "",
        f"{len(waiting)} need you" if len(waiting) > 1 else "",
        render_count(asked, "question") if asked else "",
        _render_window(facts.window_percent, Figure()),
        f"${facts.usd:.2f}" if facts.usd is not None else "",
    )
    return _SEPARATOR.join(part for part in parts if part)


def render_session(facts: CliFacts) -> str:
    """Return the facts of a session in a folder without agents."""
    parts = (
        facts.model,
        _render_window(facts.window_percent, Figure()),
        f"${facts.usd:.2f}" if facts.usd is not None else "",
    )
    return _SEPARATOR.join(part for part in parts if part)


def _render_window(now: float | None, last: Figure) -> str:
    """Return the window usage: the CLI's own number, or the last one in the log."""
    if now is not None:
        return f"window {now:.0f}%"
    mark = "~" if last.source == "estimated" else ""
    return f"window {mark}{last.value:.0f}%" if last.value is not None else ""


def _render_usd(session: float | None, row: AgentRow) -> str:
    """Return the run's spending, or the session's if the run has none."""
    cap = f" of ${row.spend.usd_cap:g}" if row.spend.usd_cap else ""
    if row.spend.usd.value:
        mark = "~" if row.spend.usd.source == "estimated" else ""
        return f"{mark}${row.spend.usd.value:.2f}{cap}"
    return f"${session:.2f}" if session is not None else ""
