"""Gemini CLI: what its last words mean.

Its API refuses with 429 for a spent quota, a rate and a model without capacity alike, so the
sentence comes before the status; and what it says of quotas names ways to log in, so quotas come
before logins.
"""

from rekindle.harnesses import verdicts
from rekindle.harnesses.verdicts import Verdict

_SENTENCES: verdicts.Sentences = (
    (verdicts.MISSING, r"no previous sessions found|invalid session identifier"),
    (verdicts.OUTAGE, r"no capacity available|model_capacity_exhausted|overloaded|high demand"),
    (verdicts.OUTAGE, r"\bunavailable\b|\binternal error\b"),
    (verdicts.LIMIT, r"usage limit reached|quota limit|quota exceeded|current quota|quota reached"),
    (verdicts.LIMIT, r"exhausted your (capacity|daily quota)|quota will reset|quota increase"),
    (verdicts.LIMIT, r"resource (has been )?exhausted|resource_exhausted|quota_exhausted"),
    (verdicts.LIMIT, r"\"quotaid\"|retrydelay|rate limit exceeded|\b429\b"),
    (verdicts.FULL, r"exceeds the maximum number of tokens"),
    (verdicts.LOGIN, r"login required|authentication (cancelled|page|type is)|invalid_grant"),
    (verdicts.LOGIN, r"credentials are not valid|set an auth method|api key not valid"),
    (verdicts.NETWORK, r"fetch failed|socket hang up|connection error|timed out"),
    (verdicts.NETWORK, verdicts.SOCKETS),
)


def verdict(text: str, status: int | None = None) -> Verdict | None:
    """What it means; None: it explains nothing, as its table of usage does not."""
    return verdicts.by_sentence(verdicts.plain(text), _SENTENCES) or verdicts.by_status(status)
