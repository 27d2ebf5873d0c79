"""Events and turns as the lines of `rekindle logs`, in the words of `rekindle run`."""

from datetime import UTC, datetime

from rekindle.cli.report_lines import ReportLine, describe_report
from rekindle.documents import event as events
from rekindle.documents import primer
from rekindle.documents.event import AnyEvent, Unrecognised
from rekindle.documents.identity import one_line
from rekindle.documents.launch import Called, Exit, ExitKind, Said
from rekindle.documents.row import with_others
from rekindle.documents.transcript import Call, Turn
from rekindle.flows.world import (
    CallRefused,
    Fell,
    Handed,
    InSafeMode,
    Launching,
    Noticed,
    Report,
    Waits,
)
from rekindle.policy import endings, questions
from rekindle.policy.refused_end import explain_refusal
from rekindle.thresholds.screens import REPORT_CHARACTERS


def describe_event(event: AnyEvent | Unrecognised, name: str) -> list[ReportLine]:
    """Return the lines for an event; none if it tells the operator nothing."""
    report = _as_report(event)
    if isinstance(report, InSafeMode):
        return describe_report(report, name)[:1]  # the question that follows has the command
    if report is not None:
        return describe_report(report, name)
    text = _describe(event)
    return [ReportLine(one_line(text, 2 * REPORT_CHARACTERS), "agent")] if text else []


def _as_report(event: AnyEvent | Unrecognised) -> Report | None:  # noqa: PLR0911 - one for each kind
    """Return what `run` reported when the event was written."""
    match event:
        case events.LaunchStarted():
            return Launching(event.cycle, event.session, event.resumes, event.recovery, event.why)
        case events.LaunchEnded():
            kind: ExitKind = "clean" if event.exit == "clean" else "crash"
            return Fell(Exit(kind, endings.explain(event.exit, event.words)), event.swept)
        case events.CycleEnded():
            refused = explain_refusal(event)
            return Handed(event.cycle, event.how, event.verdict, event.words, refused)
        case events.HangNoticed():
            return Noticed(event.words, event.ended)
        case events.CallRefused():
            return CallRefused(f"{event.tool} {event.about}".strip())
        case events.WaitStarted():
            return Waits(event.why, event.until)
        case events.SafeModeEntered():
            return InSafeMode(event.why, event.words)
        case _:
            return None


def _describe(event: AnyEvent | Unrecognised) -> str:  # noqa: PLR0911 - one for each kind
    match event:
        case events.RunEnded():
            why = endings.known(event.outcome)
            return f"{endings.outcome(why).words}: {endings.explain(why, event.words)}"
        case events.DesiredSaid():
            return "you stopped it" if event.desired == "stopped" else "you had it run"
        case events.RestartAsked():
            return f"you had it restarted{' in a fresh session' if event.fresh else ''}"
        case events.HandoffTriggered():
            return "its window is full" if event.by == "threshold" else "you asked for a handoff"
        case events.HandoffResumed():
            return f"handoff {event.count} of cycle {event.cycle}: a fresh session continues"
        case events.HandoffFailed() | events.HandoffHalted():
            return f"handoff: {event.words}"
        case events.QuestionAsked():
            step = with_others(questions.command_line(event), questions.other_answers(event))
            return f"{event.question} asks: {one_line(event.text, REPORT_CHARACTERS)} → {step}"
        case events.QuestionAnswered():
            by = event.by or "the deadline"
            refused = f", which does not count: {event.refused}" if event.refused else ""
            return f"{event.question} was answered by {by}: {event.choice or event.text}{refused}"
        case _:
            return ""


def describe_turn(turn: Turn, name: str, *, is_launched: bool) -> list[ReportLine]:
    """Return the lines for a turn: what was said, then each tool call.

    `is_launched`: a supervisor began the session, so that its first turn is Rekindle's prompt.
    """
    lines = []
    if turn.compacted:
        lines.append(ReportLine("the conversation was compacted"))
    if turn.text.strip() and turn.who == "person":
        is_prompt = is_launched and turn.number == 1
        if not (is_prompt or primer.is_one(turn.text) or primer.is_resumption(turn.text)):
            lines.append(ReportLine(one_line(f"you: {turn.text}", REPORT_CHARACTERS)))
    elif turn.text.strip():
        lines += describe_report(Said(turn.text), name)
    for call in turn.calls:
        lines += describe_report(Called(call.tool, "", f"{call.about}{_result(call)}"), name)
    return lines


def _result(call: Call) -> str:
    return ": failed" if call.result == "failed" else ""


def instant(turn: Turn, default: datetime) -> datetime:
    """Return when a turn was; the default if its CLI does not say."""
    try:
        found = datetime.fromisoformat(turn.at)
    except ValueError:
        return default
    return found if found.tzinfo else found.replace(tzinfo=UTC)
