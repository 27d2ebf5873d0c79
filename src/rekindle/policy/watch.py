"""Whether the watchdog starts an agent's supervisor: the specification's table, as code.

Supervisors are restarted, agents never: each thing has exactly one who restarts it. `ROWS` is the
table; the first row that fits decides. The page in the documentation is made from it.
"""

from collections.abc import Callable
from datetime import datetime

import msgspec

from rekindle.policy.backoff import backoff
from rekindle.policy.settings import Restart


class Tried(msgspec.Struct, frozen=True):
    """A supervisor that the watchdog has started, as long as nothing has come of it."""

    seq: int
    """How far the log was: one that came as far as to do anything has written to it."""
    at: datetime
    times: int = 1
    """How many there were in a row."""
    told: bool = False
    """A person was told of it."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an agent from outside."""

    supervised: bool
    """A supervisor lives: it holds its lock. Names and numbers of processes say nothing."""
    desired: str = ""
    """The operator's last word; empty: there was none."""
    is_over: bool = False
    """Its run is over: the work is done, or the budget is spent."""
    marker: str | None = None
    """What `.clean-exit` says; None: there is none."""
    said: int = 0
    """Where in the log the operator last said that it is to run."""
    is_tampered: bool = False
    """Its log is not the one that Rekindle wrote on this host."""
    may_miss_stop: bool = False
    """Events of its log are lost, and a stop may be among them."""
    stays: bool = False
    """It needs a person's terminal, and has no tmux window."""
    rests: float = 0.0
    """Seconds that it is left alone yet, after starts of which nothing came."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    starts: bool
    words: str
    fits: Callable[[Facts], bool]


def _is_marked(facts: Facts) -> bool:
    """Whether `.clean-exit` is there, and the operator has said nothing since: that outranks it."""
    if facts.marker is None:
        return False
    seq = facts.marker.split(maxsplit=1)[:1]
    # A person's own has no number in it.
    return not seq or not seq[0].isdecimal() or int(seq[0]) >= facts.said


ROWS: tuple[Row, ...] = (
    Row(starts=False, words="running", fits=lambda facts: facts.supervised),
    Row(
        starts=False,
        words="stopped, as the operator said",
        fits=lambda facts: facts.desired == "stopped",
    ),
    Row(
        starts=False,
        words="its log is not the one that Rekindle wrote here: see `rekindle doctor`, then"
        " `rekindle run` or `restart`",
        fits=lambda facts: facts.is_tampered,
    ),
    Row(
        starts=False,
        words="nobody has said that it is to run",
        fits=lambda facts: not facts.desired,
    ),
    Row(
        starts=False,
        words="events of its log are lost, and a stop may be among them: see `rekindle doctor`,"
        " then `rekindle run`, `up` or `restart`",
        fits=lambda facts: facts.may_miss_stop,
    ),
    Row(starts=False, words="its run is over", fits=lambda facts: facts.is_over),
    Row(starts=False, words="ended as intended", fits=_is_marked),
    Row(
        starts=False,
        words="it needs a terminal: `rekindle run` there, or `rekindle up --tmux`",
        fits=lambda facts: facts.stays,
    ),
    Row(
        starts=False,
        words="its supervisor was started, and has not come up",
        fits=lambda facts: facts.rests > 0,
    ),
    Row(starts=True, words="its supervisor is gone", fits=lambda _: True),
)


def rests(tried: Tried | None, now: datetime, limits: Restart) -> float:
    """How long it is left alone yet: as long as an agent that crashes, with pauses that double."""
    if tried is None:
        return 0.0
    since = (now - tried.at).total_seconds()
    if since < 0:
        return 0.0  # the clock was set back
    return max(0.0, backoff(limits, tried.times - 1) - since)


def verdict(facts: Facts) -> Row:
    return next(row for row in ROWS if row.fits(facts))
