"""One agent in the fleet table, as compact JSON for the page."""

from typing import Any

import msgspec

from rekindle.documents.screens.agent_row import STATES, AgentRow, Figure
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.redact.redaction import Redaction
from rekindle.thresholds.web_limits import UI_REASON_CHARACTERS


class WebRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent's row. Values that are empty or unknown are left out."""

    project: str
    agent: str
    state: str
    harness: str = ""
    label: str = ""
    """The state as shown to people, if it has its own words."""
    needs: bool = False
    """Whether the agent needs a person, or asks a question while it works."""
    why: str = ""
    next: str = ""
    cycle: int = 0
    done: int = 0
    of: int | None = None
    window: float | None = None
    usd: float | None = None
    cap: float | None = None
    tokens: float | None = None
    guessed: tuple[str, ...] = ()
    """Names of the numbers that are estimated."""
    loops: int = 0
    stale: int = 0
    questions: int = 0
    seen: int | None = None
    """Time of the last sign of life, in seconds since 1970."""


def encode_row(project: str, row: AgentRow, redaction: Redaction) -> bytes:
    """Return an agent's row as JSON, without secrets."""
    figures = {"window": row.window.percent, "usd": row.spend.usd, "tokens": row.spend.tokens}
    made = WebRow(
        project=project,
        agent=row.agent,
        state=row.state,
        harness=row.harness,
        label=redaction.text(row.label) if row.label != row.state else "",
        needs=STATES[row.state].needs_person or row.open_questions > 0,
        why=to_one_line(redaction.text(row.reason), UI_REASON_CHARACTERS),
        next=to_one_line(redaction.text(row.next_action), UI_REASON_CHARACTERS),
        cycle=row.cycle,
        done=row.cycles_done,
        of=row.cycles_of,
        window=_round(figures["window"]),
        usd=_round(figures["usd"]),
        cap=row.spend.usd_cap,
        tokens=figures["tokens"].value,
        guessed=tuple(name for name, one in figures.items() if one.source == "estimated"),
        loops=row.open_loops,
        stale=row.stale_loops,
        questions=row.open_questions,
        seen=int(row.last_active.timestamp()) if row.last_active else None,
    )
    return msgspec.json.encode(made)


def _round(figure: Figure) -> float | None:
    return None if figure.value is None else round(figure.value, 2)


def encode_answer(value: Any, redaction: Redaction) -> bytes:
    """Return an answer to a page as JSON, without secrets. All answers pass through here."""
    return redaction.json(msgspec.json.encode(value))
