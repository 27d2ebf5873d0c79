"""Decide whether the watchdog starts an agent's supervisor.

The watchdog restarts only supervisors, and only supervisors restart agents. The first matching row
of `WATCH_TABLE` decides. The documentation page is generated from that table.
"""

from collections.abc import Callable
from datetime import datetime

import msgspec

from rekindle.policy.exits.backoff import compute_backoff
from rekindle.policy.settings.runtime_settings import RestartSettings


class StartAttempt(msgspec.Struct, frozen=True):
    """A supervisor that the watchdog started and that has not written to the log yet."""

    seq: int
    """The log's last sequence number when the supervisor was started. Any activity increases it."""
    at: datetime
    times: int = 1
    """Number of consecutive attempts."""
    notified: bool = False
    """Whether a person was notified about the failed attempts."""


class WatchFacts(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's state, as the watchdog sees it."""

    supervised: bool
    """Whether a supervisor holds the agent's lock, which is more reliable than a process id."""
    desired: str = ""
    """State that the operator last requested; empty if there was no command yet."""
    is_over: bool = False
    """Whether the agent's run is over, because the work is done or the budget is spent."""
    marker: str | None = None
    """Content of `.clean-exit`; None if it does not exist."""
    wanted: int = 0
    """Log position of the operator's last command to run."""
    is_tampered: bool = False
    """Whether the agent's log differs from the one that Rekindle wrote on this host."""
    may_miss_stop: bool = False
    """Whether a stop may be among the events that were lost from the log."""
    stays: bool = False
    """Whether the agent needs a terminal for a person but has no tmux window."""
    rests: float = 0.0
    """Seconds until the next attempt after failed starts."""


class WatchRow(msgspec.Struct, frozen=True, kw_only=True):
    starts: bool
    words: str
    fits: Callable[[WatchFacts], bool]


def _has_valid_marker(facts: WatchFacts) -> bool:
    """Return whether `.clean-exit` exists and the operator has not requested a run since then."""
    if facts.marker is None:
        return False
    seq = facts.marker.split(maxsplit=1)[:1]
    # A marker file that a person created has no number.
    return not seq or not seq[0].isdecimal() or int(seq[0]) >= facts.wanted


WATCH_TABLE: tuple[WatchRow, ...] = (
    WatchRow(starts=False, words="running", fits=lambda facts: facts.supervised),
    WatchRow(
        starts=False,
        words="stopped by the operator",
        fits=lambda facts: facts.desired == "stopped",
    ),
    WatchRow(
        starts=False,
        words="its log is not the one that Rekindle wrote here: see `rekindle doctor`, then use "
        "`rekindle run` or `restart`",
        fits=lambda facts: facts.is_tampered,
    ),
    WatchRow(
        starts=False,
        words="the operator has not started it",
        fits=lambda facts: not facts.desired,
    ),
    WatchRow(
        starts=False,
        words="events are missing from its log, and a stop may be among them: see `rekindle "
        "doctor`, then use `rekindle run`, `up` or `restart`",
        fits=lambda facts: facts.may_miss_stop,
    ),
    WatchRow(starts=False, words="its run is over", fits=lambda facts: facts.is_over),
    WatchRow(starts=False, words="ended as intended", fits=_has_valid_marker),
    WatchRow(
        starts=False,
        words="it needs a terminal: use `rekindle run` there, or `rekindle up --tmux`",
        fits=lambda facts: facts.stays,
    ),
    WatchRow(
        starts=False,
        words="its supervisor was started, but is not running yet",
        fits=lambda facts: facts.rests > 0,
    ),
    WatchRow(starts=True, words="its supervisor is gone", fits=lambda _: True),
)


def compute_rest(attempt: StartAttempt | None, now: datetime, limits: RestartSettings) -> float:
    """Return the seconds until the next attempt, with the same backoff as after crashes."""
    if attempt is None:
        return 0.0
    since = (now - attempt.at).total_seconds()
    if since < 0:
        return 0.0  # the clock was set back
    return max(0.0, compute_backoff(limits, attempt.times - 1) - since)


def decide_start(facts: WatchFacts) -> WatchRow:
    return next(row for row in WATCH_TABLE if row.fits(facts))
