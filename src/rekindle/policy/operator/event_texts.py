"""Describe questions, answers, operator commands and the end of a run in one line.

`logs`, the morning page and all other screens use these texts.
"""

from datetime import datetime

from rekindle.documents import events
from rekindle.documents.manifest_keys import Budget
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.exits import explain_reasons, stop_reasons
from rekindle.policy.operator.command_authors import name_author
from rekindle.policy.supervision.budget import describe_budget
from rekindle.thresholds.screens import REPORT_CHARACTERS

OperatorAction = (
    events.BudgetRaised
    | events.DesiredSet
    | events.MessageSent
    | events.PersonAnswered
    | events.RestartRequested
    | events.WorkRewound
)


def describe_stop(event: events.RunEnded | events.SafeModeEntered) -> str:
    """Return the outcome of a run that is over or in safe mode, and the reason."""
    outcome = stop_reasons.find_outcome(event.why).words
    return f"{outcome}: {explain_reasons.explain_reason(event.why, event.words)}"


def describe_question(event: events.QuestionAsked) -> str:
    return f"{event.question} asks: {to_one_line(event.text, REPORT_CHARACTERS)}"


def describe_answer(event: events.QuestionAnswered) -> str:
    by = event.by or "the deadline"
    refused = f", which was refused: {event.refused}" if event.refused else ""
    return f"{event.question} was answered by {by}: {event.choice or event.text}{refused}"


_DELIVERIES = {
    "hook": "with the result of a tool call",
    "prompt": "in its prompt",
    "primer": "at the start of a session",
}


def describe_delivery(event: events.MessageDelivered) -> str:
    return f"received message {event.message} {_DELIVERIES.get(event.how, '')}".strip()


def describe_action(event: OperatorAction) -> str:  # noqa: PLR0911 - one return per kind
    """Return the line for an operator's action, or "" for an event without a line."""
    who = "you" if isinstance(event, events.WorkRewound) else name_author(event.by)
    match event:
        case events.DesiredSet(desired="stopped"):
            return f"{who} stopped it"
        case events.DesiredSet(due=datetime() as due):
            return f"its schedule started it, for {due:%Y-%m-%d %H:%M} UTC"
        case events.DesiredSet() if event.cycles is not None:
            return f"{who} started it"
        case events.PersonAnswered():
            return f"{who} answered: {to_one_line(event.text, REPORT_CHARACTERS)}"
        case events.MessageSent():
            text = to_one_line(event.text, REPORT_CHARACTERS)
            return f"{who} sent message {event.message}: {text}"
        case events.RestartRequested(once=False):
            return f"{who} restarted it{' in a fresh session' if event.fresh else ''}"
        case events.BudgetRaised():
            caps = Budget(event.usd, event.tokens, event.hours)
            return f"{who} raised its budget: the run {describe_budget(caps)}"
        case events.WorkRewound():
            return f"you rewound the work tree to {event.snapshot} ({event.occasion})"
        case _:
            return ""
