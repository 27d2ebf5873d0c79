"""An agent's use of one account: its spending by the hour, and when it last wanted to work.

Each file has one writer, the agent's supervisor. Other supervisors read it to share the account.
"""

from datetime import datetime
from typing import Literal

import msgspec

SCHEMA = 1
Priority = Literal["high", "normal", "low"]


class HourSpending(msgspec.Struct, frozen=True):
    """What an agent spent in one hour."""

    usd: float = 0.0
    tokens: int = 0


class AgentLedger(msgspec.Struct, frozen=True):
    project: str
    agent: str
    priority: Priority = "normal"
    asked_at: datetime | None = None
    """When the agent last worked or wanted to work; None if its supervisor has ended."""
    is_working: bool = False
    """Whether one of the agent's launches used the account at that time."""
    waits: bool = False
    """Whether the agent waits only because other agents go first."""
    process: str = ""
    """Identity of the supervisor, which may have been killed since."""
    run: str = ""
    """The run that `run_usd` and `run_tokens` belong to, as named by its projection."""
    run_usd: float = 0.0
    run_tokens: int = 0
    hours: dict[int, HourSpending] = {}
    """Spending by hour, counted from 1970."""
    v: int = SCHEMA
