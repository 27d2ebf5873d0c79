"""Convert events and turns to `rekindle logs` lines, using the same wording as `rekindle run`."""

from datetime import UTC, datetime

from rekindle.api.describe_reports import (
    ReportLine,
    describe_report,
)
from rekindle.documents import events, primer
from rekindle.documents.events import (
    AnyEvent,
    UnknownEvent,
)
from rekindle.documents.launches.launch_types import (
    AssistantText,
    ExitKind,
    LaunchExit,
    ToolCallStarted,
)
from rekindle.documents.launches.route import Route
from rekindle.documents.screens.agent_row import render_command
from rekindle.documents.transcripts.turns import (
    Turn,
)
from rekindle.flows.supervisor_ports import (
    CycleReport,
    ExitReport,
    HangReport,
    LaunchReport,
    RefusedCallReport,
    RefusedHostReport,
    RepetitionReport,
    SafeModeReport,
    SupervisorReport,
    WaitReport,
)
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.exits import explain_reasons
from rekindle.policy.exits.refused_end import explain_refusal
from rekindle.policy.operator import answers, event_texts
from rekindle.policy.sandbox.allowed_hosts import render_permission
from rekindle.thresholds.screens import REPORT_CHARACTERS


def describe_event(event: AnyEvent | UnknownEvent, name: str) -> list[ReportLine]:
    """Return the lines for an event, or an empty list if the operator does not need to see it."""
    report = _make_report(event)
    if isinstance(report, SafeModeReport):
        return describe_report(report, name)[:1]  # The question that follows shows the command.
    if report is not None:
        return describe_report(report, name)
    text = _describe_event(event)
    return [ReportLine(to_one_line(text, 2 * REPORT_CHARACTERS), "agent")] if text else []


def _make_report(event: AnyEvent | UnknownEvent) -> SupervisorReport | None:  # noqa: PLR0911 - one return per kind
    """Return the report that `run` printed when the event was recorded."""
    match event:
        case events.LaunchStarted():
            route = str(Route(event.harness, event.account)) if event.account else ""
            return LaunchReport(
                event.cycle, event.session, event.resumes, event.recovery, event.why, route
            )
        case events.LaunchEnded():
            kind: ExitKind = "clean" if event.exit == "clean" else "crash"
            return ExitReport(
                LaunchExit(kind, explain_reasons.explain_reason(event.exit, event.words)),
                event.swept,
            )
        case events.CycleEnded():
            refused = explain_refusal(event)
            return CycleReport(event.cycle, event.how, event.verdict, event.words, refused)
        case events.HangDetected():
            return HangReport(event.words, event.ended)
        case events.RepetitionDetected():
            return RepetitionReport(event.words)
        case events.HostRefused():
            return RefusedHostReport(event.host, render_permission(event.host))
        case events.CallRefused():
            return RefusedCallReport(f"{event.tool} {event.about}".strip())
        case events.WaitStarted():
            return WaitReport(event.why, event.until, event.words)
        case events.SafeModeEntered():
            return SafeModeReport(event.why, event.words)
        case _:
            return None


_HANDOFF_CAUSES = {
    "threshold": "the context window is full",
    "repetition": "the agent repeated itself",
}


def _describe_event(event: AnyEvent | UnknownEvent) -> str:  # noqa: PLR0911 - one return per kind
    match event:
        case events.RunEnded():
            return event_texts.describe_stop(event)
        case _ if isinstance(event, event_texts.OperatorAction):
            return event_texts.describe_action(event)
        case events.HandoffTriggered():
            return _HANDOFF_CAUSES.get(event.by, "you asked for a handoff")
        case events.HandoffResumed():
            return f"handoff {event.count} of cycle {event.cycle}: a fresh session continues"
        case events.HandoffFailed() | events.HandoffHalted():
            return f"handoff: {event.words}"
        case events.WorkspaceCreated():
            return f"created its own checkout {event.folder} on {event.branch}"
        case events.QuestionAsked():
            step = render_command(
                answers.render_answer_command(event), answers.list_other_answers(event)
            )
            return f"{event_texts.describe_question(event)} → {step}"
        case events.QuestionAnswered():
            return event_texts.describe_answer(event)
        case events.MessageDelivered():
            return event_texts.describe_delivery(event)
        case _:
            return ""


def describe_turn(
    turn: Turn, name: str, *, is_launched: bool, is_output: bool = False
) -> list[ReportLine]:
    """Return the lines for a turn: its text, then each tool call.

    `is_launched` is true if a supervisor started the session, in which case the first turn is
    Rekindle's prompt. `is_output` is true if the turn is a program's plain output.
    """
    lines = []
    if turn.compacted:
        lines.append(ReportLine("the conversation was compacted"))
    if turn.text.strip() and turn.who == "person":
        is_prompt = is_launched and turn.number == 1
        if not (is_prompt or primer.is_primer(turn.text) or primer.is_resume_prompt(turn.text)):
            lines.append(ReportLine(to_one_line(f"you: {turn.text}", REPORT_CHARACTERS)))
    elif turn.text.strip():
        texts = turn.text.splitlines() if is_output else [turn.text]
        lines += [
            line for text in texts if text for line in describe_report(AssistantText(text), name)
        ]
    for call in turn.calls:
        failed = ": failed" if call.result == "failed" else ""
        lines += describe_report(ToolCallStarted(call.tool, "", f"{call.about}{failed}"), name)
    return lines


def find_time(turn: Turn, default: datetime) -> datetime:
    """Return the time of a turn, or the default if the CLI did not record one."""
    try:
        moment = datetime.fromisoformat(turn.at)
    except ValueError:
        return default
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
