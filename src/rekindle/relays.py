"""Parse, check and trim relays, without a project folder.

from rekindle import relays

report = relays.check(relays.parse(text))
print(report.usable, report.findings)
"""

from rekindle.documents.relay import Relay, RelayField, compose, parse, render
from rekindle.policy.relay.relay_check import (
    RelayFinding,
    RelayKind,
    RelayReport,
    classify_relay,
)
from rekindle.policy.relay.trim import RemovedText, TrimResult, trim_relay
from rekindle.policy.settings.runtime_settings import RelaySettings

__all__ = [
    "MOST_TOKENS",
    "Relay",
    "RelayField",
    "RelayFinding",
    "RelayKind",
    "RelayReport",
    "RemovedText",
    "TrimResult",
    "check",
    "compose",
    "parse",
    "render",
    "trim",
]

MOST_TOKENS = RelaySettings().max_relay_tokens
"""Default maximum size of a relay, in tokens."""


def check(relay: Relay, most_tokens: int = MOST_TOKENS) -> RelayReport:
    """Return whether the next cycle can use a relay, and the problems that it has."""
    return classify_relay(relay, most_tokens)


def trim(relay: Relay, most_tokens: int = MOST_TOKENS) -> TrimResult:
    """Return a relay without its oldest parts, so that it fits, and the removed parts."""
    return trim_relay(relay, most_tokens)
