"""Questions that an agent's workflow asks a person."""

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from rekindle.documents import events
    from rekindle.policy.fleet.agent_registry import RegisteredAgent
    from rekindle.policy.operator import questions


def add_question(registered: RegisteredAgent, event: events.AnyEvent) -> list[events.AnyEvent]:
    """Return the event, followed by a question if a person must decide."""
    return questions.add_questions(registered.projection, [event], make_question_terms(registered))


def make_question_terms(registered: RegisteredAgent) -> questions.QuestionTerms:
    limits = registered.definition.limits
    seconds = limits.runtime.questions.deadline
    return questions.QuestionTerms(workflow.now(), seconds, limits.budget)
