"""Redaction: what must not leave a transcript is replaced before anything is written."""

from rekindle.policy.redact.finding import RULES, Finding, find, label, redact
from rekindle.policy.redact.redaction import Redaction

__all__ = ["RULES", "Finding", "Redaction", "find", "label", "redact"]
