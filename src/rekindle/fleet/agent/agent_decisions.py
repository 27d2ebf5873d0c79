"""Decide an agent's next step in its workflow, with patches for histories from older versions."""

from datetime import datetime

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from rekindle.documents import events
    from rekindle.policy.exits.restart import HANDOFF_EXIT, WaitUntil
    from rekindle.policy.fleet.agent_registry import RegisteredAgent
    from rekindle.policy.operator import questions
    from rekindle.policy.progress import idle
    from rekindle.policy.supervision import run_moves as runs
    from rekindle.policy.supervision.next_move import (
        decide_move,
        has_failed_resume,
        select_open_launches,
    )

QUESTIONS_PATCH = "questions"
"""Name of the patch that introduced questions for a person. Older histories do not contain it."""
_PACED_HANDOFFS = "paced-handoffs"
"""Name of the patch that added a pause before a launch that follows a handoff."""
_RESUMES = "failed-resumes"
"""Name of the patch that stopped counting a refused resume as a crash."""


def decide(registered: RegisteredAgent, now: datetime) -> runs.Move:
    """Return the agent's next step, using the rules of the version that started its history."""
    projection, limits = registered.projection, registered.definition.limits
    # Check a patch only when it matters, because each check adds a marker to the history.
    counts = has_failed_resume(projection) and not workflow.patched(_RESUMES)
    move = decide_move(projection, limits, now, resumes_count=counts)
    is_paced = isinstance(move, WaitUntil) and move.why == idle.IDLE_REASON
    last = select_open_launches(projection)[-1:]
    if is_paced and last and last[0].exit == HANDOFF_EXIT:
        paces = workflow.patched(_PACED_HANDOFFS)
        return decide_move(projection, limits, now, paces_handoffs=paces, resumes_count=counts)
    return move


def add_question(registered: RegisteredAgent, event: events.AnyEvent) -> list[events.AnyEvent]:
    """Return the event, followed by a question if a person must decide."""
    if not workflow.patched(QUESTIONS_PATCH):
        return [event]
    return questions.add_questions(registered.projection, [event], make_question_terms(registered))


def make_question_terms(registered: RegisteredAgent) -> questions.QuestionTerms:
    limits = registered.definition.limits
    seconds = limits.runtime.questions.deadline
    return questions.QuestionTerms(workflow.now(), seconds, limits.budget)
