"""Ask a person, and wait for the answer for a limited time.

The server only proposes the question. The supervisor, which is the log's writer, asks it. The
answer then arrives through the log, like every answer.
"""

import threading
import time
from collections.abc import Sequence

from rekindle.documents.events import ProposalMade, QuestionAsked
from rekindle.errors import UsageError
from rekindle.mcp.propose_notes import clean_text
from rekindle.mcp.served_agent import ServedAgent
from rekindle.policy.operator import questions
from rekindle.policy.projection.projection import Projection
from rekindle.system import clock
from rekindle.thresholds.proposal_limits import ASK_POLL_SECONDS, ASK_SECONDS, ASKED_OPEN


def ask_person(
    agent: ServedAgent,
    cancelled: threading.Event,
    question: str,
    options: Sequence[str] = (),
    wait_seconds: int = ASK_SECONDS,
) -> str:
    """Ask a question, unless it was asked before, and return the answer or that there is none."""
    text = clean_text(agent, question)
    deadline = time.monotonic() + wait_seconds
    if not agent.is_launched or not agent.is_supervised():
        return "No supervisor runs this session, so ask the person in the conversation."
    _propose_question(agent, text, options)
    while True:
        known = agent.read().projection
        asked = questions.find_asked(known, text)
        if asked is not None and (answer := _find_answer(known, asked)):
            return answer
        remaining = deadline - time.monotonic()
        if remaining <= 0 or cancelled.wait(min(remaining, ASK_POLL_SECONDS)):
            break
    name = f"Question {asked.question}" if asked else "The question"
    return (
        f"No answer yet. {name} stays open, and its answer comes in a later cycle. Continue with"
        " other work. To wait longer, ask again with exactly the same question."
    )


def _propose_question(agent: ServedAgent, text: str, options: Sequence[str]) -> None:
    with agent.lock:
        known, now = agent.read().projection, clock.read_clock()
        waiting = [each.text for each in questions.list_proposed(known)]
        if text in waiting or questions.find_asked(known, text) is not None:
            return
        if len(waiting) + questions.count_asked(known, now) >= ASKED_OPEN:
            raise UsageError(
                f"{ASKED_OPEN} of your questions are open already",
                hint="continue with other work; their answers come in a later cycle",
            )
        choices = tuple(clean_text(agent, option) for option in options)
        agent.submit(
            ProposalMade(ts=now, about="question", text=text, choices=choices, by=agent.name)
        )


def _find_answer(known: Projection, asked: QuestionAsked) -> str:
    """Return the answer to a question, or "" if the question is open."""
    state = questions.find_question_state(known, asked, clock.read_clock())
    answer = known.answers.get(asked.question)
    if state == "answered" and answer is not None:
        return f"A person answered {asked.question}: {answer.text or answer.choice}"
    if state == "open":
        return ""
    return f"No person answered {asked.question} in time. Decide yourself, and record the decision."
