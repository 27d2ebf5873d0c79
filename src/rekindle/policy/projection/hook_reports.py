"""Recognize duplicate reports that several installed hooks send for the same event."""

from collections.abc import Mapping
from datetime import datetime

from rekindle.documents import events
from rekindle.documents.events import AnyEvent, UnknownEvent
from rekindle.thresholds.hook_limits import REPORTS_KEPT, SAME_START_SECONDS


def make_report_key(event: AnyEvent | UnknownEvent) -> str:  # noqa: PLR0911 - one per kind of report
    """Return the key that duplicate reports of an event share, or "" if every report counts."""
    match event:
        case events.Heartbeat() if event.call:
            return f"call {event.session} {event.call}"
        case events.PromptSubmitted() if event.call:
            return f"prompt {event.session} {event.call}"
        case events.SessionStarted() if event.process or event.source == "compact":
            return f"start {event.session} {event.source} {event.process}"
        case events.SessionCompacted():
            return f"compacted {event.session} {event.trigger}"
        case events.SessionEnded():
            return f"end {event.session} {event.reason}"
        case events.PrimerGiven():
            return f"primer {event.session} {event.source}"
        case _:
            return ""


def is_repeated(reports: Mapping[str, datetime], event: AnyEvent | UnknownEvent) -> bool:
    """Return whether another hook has already reported the same event.

    Hooks may be installed at three levels. A session can be compacted several times, and can end
    again after a resume. Reports of such events are duplicates only if they arrive within moments
    of each other.
    """
    before = reports.get(make_report_key(event))
    if before is None:
        return False
    is_close = abs((event.ts - before).total_seconds()) < SAME_START_SECONDS
    match event:
        case events.SessionStarted(source="compact") | events.SessionCompacted():
            return is_close
        case events.SessionEnded():
            starts = f"start {event.session} "
            resumed = any(at > before for key, at in reports.items() if key.startswith(starts))
            return is_close and not resumed
        case _:
            return True


def keep_newest_reports(
    reports: dict[str, datetime], most: int = REPORTS_KEPT
) -> dict[str, datetime]:
    """Return the newest reports. Older ones can no longer have duplicates."""
    newest = sorted(reports.items(), key=lambda item: (item[1], item[0]))[-most:]
    return dict(newest)
