"""Codex: what its last words mean.

It puts a failure into another's words ("Error running remote compact task: …", "stream disconnected
before completion: …"), so what is said inside comes before what is said around it.
"""

from rekindle.harnesses import verdicts
from rekindle.harnesses.verdicts import Verdict

_SENTENCES: verdicts.Sentences = (
    (verdicts.MISSING, r"no rollout found"),
    (verdicts.IN_USE, r"already has an active writer"),
    (verdicts.FULL, r"context_length_exceeded|exceeds the context window|ran out of room"),
    (verdicts.WITHHELD, r"reason: content_filter"),
    (verdicts.TOKENS, r"token budget exhausted"),
    (verdicts.UNPAID, r"out of credits|spend cap|plan and billing details"),
    (verdicts.UNPAID, r"to use codex with your chatgpt plan"),
    (verdicts.LIMIT, r"hit your usage limit|usage limit has been reached|usage_limit_reached"),
    (verdicts.LIMIT, r"atingiu o limite|l[ií]mite de uso (se|será) (restablece|redefinid)"),
    (verdicts.LIMIT, r"rate limit (reached|exceeded)|\b429 too many requests"),
    (verdicts.LOGIN, r"token could not be refreshed|failed to refresh token|not logged in"),
    (verdicts.LOGIN, r"status:? 401\b|sign in again"),
    (verdicts.ACCESS, r"status:? 403\b"),
    (verdicts.OUTAGE, r"high demand|at capacity|server_is_overloaded|status:? 5\d\d\b"),
    (verdicts.NETWORK, r"stream disconnected|error sending request|connection failed"),
    (verdicts.NETWORK, r"timed out|timeout waiting for child process|reconnecting\.\.\."),
    (verdicts.NETWORK, verdicts.SOCKETS),
)


def verdict(text: str, status: int | None = None) -> Verdict | None:
    """What it means; None: it explains nothing, as a warning or a panel of usage does not."""
    return verdicts.by_sentence(verdicts.plain(text), _SENTENCES) or verdicts.by_status(status)
