"""Convert supervisor reports to readable lines for `rekindle run` and `rekindle logs`."""

from collections.abc import Iterator
from typing import Literal, NamedTuple, TypedDict

from rekindle.documents.launches.launch_types import (
    AssistantText,
    CompactionReport,
    RetryReport,
    ToolCallStarted,
    WarningReport,
)
from rekindle.flows.supervisor_ports import (
    CycleReport,
    ExitReport,
    HandoffReport,
    HangReport,
    LaunchReport,
    RefusedCallReport,
    RefusedHostReport,
    RepetitionReport,
    SafeModeReport,
    SkippedWaitReport,
    SupervisorReport,
    WaitReport,
)
from rekindle.formats.counts import render_count
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.exits import explain_reasons, stop_reasons
from rekindle.thresholds.screens import REPORT_CHARACTERS


class TextStyle(TypedDict, total=False):
    """Text style for command output."""

    fg: str | None
    bold: bool
    dim: bool


class ReportLine(NamedTuple):
    """A line about an agent."""

    text: str
    place: Literal["agent", "margin", "inside"] = "inside"
    """Start of the line: the agent's name, the margin, or an indent below another line."""
    style: TextStyle = {}  # noqa: RUF012 - nothing changes it


def describe_report(
    report: SupervisorReport, name: str, *, has_keyboard: bool = False
) -> list[ReportLine]:
    """Return the lines for a report, or an empty list if the operator does not need to see it.

    `has_keyboard` is true if pressing Enter in this terminal ends safe mode.
    """
    return list(_list_report_lines(report, name, has_keyboard=has_keyboard))


def _list_report_lines(
    report: SupervisorReport, name: str, *, has_keyboard: bool
) -> Iterator[ReportLine]:
    match report:
        case LaunchReport():
            how = "the same session continues" if report.resumes else "a fresh session"
            how += f" on {report.route}" if report.route else ""
            notice = ", and is told what was interrupted" if report.recovery else ""
            which = f" ({report.session[:8]})" if report.session else ""
            yield ReportLine(f"cycle {report.cycle}, {how}{which}{notice}", "agent", {"bold": True})
        case ExitReport():
            yield from _describe_exit(report)
        case CycleReport():
            yield ReportLine(_describe_end(report), "agent")
            if report.refused:
                yield ReportLine(f"✗ {report.refused}", style={"fg": "yellow"})
        case HandoffReport():
            how = "by a model" if report.how == "headless" else "from the log, git and the turns"
            reason = f" ({report.words})" if report.words else ""
            text = f"a checkpoint was written {how}{reason}; a fresh session continues"
            yield ReportLine(text, "agent")
        case HangReport() | RepetitionReport():
            yield ReportLine(f"! {report.words}", "margin", {"fg": "yellow"})
        case RefusedCallReport() | RefusedHostReport():
            yield from _describe_refusal(report)
        case WaitReport() | SkippedWaitReport():
            yield ReportLine(_describe_wait(report), "agent")
        case SafeModeReport():
            outcome = stop_reasons.find_outcome(report.why).words
            words = explain_reasons.explain_reason(report.why, report.words)
            yield ReportLine(f"{outcome}, in safe mode: {words}", "agent", {"fg": "red"})
            takes_enter = report.takes_enter and has_keyboard
            hint = explain_reasons.render_hint(
                report.why, name, is_safe=True, answer=report.command, takes_enter=takes_enter
            )
            yield ReportLine(f"→ {hint}")
        case _:
            yield from _describe_output(report)


def _describe_wait(report: WaitReport | SkippedWaitReport) -> str:
    at = f"{report.until.astimezone():%Y-%m-%d %H:%M:%S}"
    start = "started now; it was " if isinstance(report, SkippedWaitReport) else ""
    words = f": {report.words}" if isinstance(report, WaitReport) and report.words else ""
    return f"{start}waiting until {at}: {explain_reasons.explain_reason(report.why)}{words}"


def _describe_output(report: SupervisorReport) -> Iterator[ReportLine]:
    match report:
        case ToolCallStarted():
            yield ReportLine(to_one_line(f"· {report.tool} {report.about}", REPORT_CHARACTERS))
        case AssistantText() | WarningReport():
            yield ReportLine(to_one_line(report.text, REPORT_CHARACTERS))
        case RetryReport():
            yield ReportLine(
                f"the model's API failed ({report.status or 'no answer'}); the CLI will retry in "
                f"{report.seconds:.0f} s"
            )
        case CompactionReport():
            yield ReportLine("the conversation was compacted")
        case _:
            pass


def _describe_refusal(report: RefusedCallReport | RefusedHostReport) -> Iterator[ReportLine]:
    if isinstance(report, RefusedHostReport):
        words = f"! the sandbox refused a connection to {report.host}"
        yield ReportLine(words, "margin", {"fg": "yellow"})
        yield ReportLine(f"  → to allow it: `{report.permission}`", "margin")
        return
    words = f"{to_one_line(report.call, REPORT_CHARACTERS)}: refused, no permission"
    if not report.is_repeated:
        yield ReportLine(f"✗ {words}", style={"fg": "red"})
    if report.command:
        yield ReportLine(f"{words if report.is_repeated else ''}  → {report.command}")


def _describe_end(report: CycleReport) -> str:
    how = {
        "draft": "the agent wrote the relay",
        "edit": "the agent edited the relay",
        "summary": "the agent wrote no relay: the next cycle gets a summary of its work",
        "carried": "the agent wrote no relay: the next cycle gets the known facts about its work",
    }.get(report.how, "no relay was written")
    verdict = f"; {': '.join(filter(None, (report.verdict, report.words)))}" if report.words else ""
    return f"cycle {report.cycle} is over, {how}{verdict}"


def _describe_exit(report: ExitReport) -> Iterator[ReportLine]:
    processes = render_count(report.swept, "process", "processes")
    left = f"ended {processes} that the agent had left running" if report.swept else ""
    if report.exit.kind != "clean":
        words = "; ".join(filter(None, (report.exit.words or report.exit.kind, left)))
        yield ReportLine(f"! {words}", "margin", {"fg": "yellow"})
    elif left:
        yield ReportLine(left)
