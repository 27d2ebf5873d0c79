"""Events about the quota of the account that an agent uses."""

from rekindle.documents.events.event import Event
from rekindle.documents.launches.quota_windows import QuotaWindow


class QuotaReported(Event, frozen=True, kw_only=True, tag="quota.reported"):
    summary = "A CLI reported the usage of its account's quota, which changed by a percent or more."
    launch: str
    harness: str
    account: str = ""
    """Name in the manifest's `accounts:`, or empty for the CLI's own configuration."""
    windows: tuple[QuotaWindow, ...]
    """Quota windows with their usage in percent and their reset times."""
