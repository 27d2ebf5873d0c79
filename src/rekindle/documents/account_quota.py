"""The stored quota of an account, which all agents of a user share."""

from datetime import datetime

import msgspec

from rekindle.documents.launches.quota_windows import QuotaWindow

SCHEMA = 1


class AccountQuota(msgspec.Struct, frozen=True):
    """The newest numbers that a CLI reported for an account."""

    harness: str
    folder: str
    """Configuration folder of the CLI, with links resolved."""
    seen_at: datetime | None = None
    windows: tuple[QuotaWindow, ...] = ()
    v: int = SCHEMA
