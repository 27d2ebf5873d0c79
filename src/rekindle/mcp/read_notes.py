"""Render an agent's notes as text for the agent."""

from datetime import datetime

from rekindle.documents import relay as relays
from rekindle.documents.events import QuestionAsked
from rekindle.documents.relay import Relay, RelayField
from rekindle.documents.screens.agent_row import render_spend
from rekindle.errors import UsageError
from rekindle.formats.identifiers import to_one_line
from rekindle.mcp.served_agent import ServedAgent
from rekindle.policy.operator import questions
from rekindle.policy.operator.build_row import RowInputs, build_row
from rekindle.policy.projection import open_loops
from rekindle.policy.projection.projection import Projection
from rekindle.policy.projection.proposals import find_claim
from rekindle.policy.relay import decision_ledger, relay_notes
from rekindle.system import clock
from rekindle.thresholds.proposal_limits import SEARCH_HITS


def read_status(agent: ServedAgent) -> str:
    """Return the agent's state, one fact per line."""
    known = agent.read().projection
    entry = agent.project.manifest.agents.get(agent.name) if agent.project else None
    row = build_row(
        known,
        RowInputs(
            clock.read_clock(),
            is_supervised=agent.is_supervised(),
            budget=entry.budget if entry else None,
            loops=agent.settings.runtime.loops,
        ),
        entry.harness if entry else "",
    )
    cycles = f" of {row.cycles_of}" if row.cycles_of else ""
    percent = row.window.percent.value
    facts = {
        "agent": row.agent,
        "state": f"{row.label}: {row.reason}" if row.reason else row.label,
        "cycle": f"{row.cycles_done + 1}{cycles}" if row.state == "running" else str(row.cycle),
        "window": f"{percent:.0f}% full" if percent is not None else "",
        "spent in this run": render_spend([row.spend]),
        "cap": f"${row.spend.usd_cap:g}" if row.spend.usd_cap else "",
        "open loops": str(row.open_loops),
        "open questions to a person": str(row.open_questions),
        "next action": row.next_action,
    }
    return "\n".join(f"{name}: {to_one_line(fact)}" for name, fact in facts.items() if fact)


def read_relay(agent: ServedAgent) -> str:
    """Return the relay with the notes that were proposed since."""
    relay = _merge_relay(agent)
    return relays.render(relay) if relay else "There is no relay yet: this is the first cycle."


def read_loops(agent: ServedAgent) -> str:
    """Return the open loops, one per line, with claims that they are done."""
    known, now = agent.read().projection, clock.read_clock()
    opened = open_loops.list_open_loops(known.loops, now, agent.settings.runtime.loops)
    lines = []
    for loop in opened:
        by = known.loops[loop.id].opened_by
        claim = find_claim(known.proposals, known.loops[loop.id])
        lines.append(open_loops.render_loop_line(loop, f"opened by {by}" if by else ""))
        if claim is not None:
            lines.append(f"  proposed as resolved, for a person to confirm: {claim.text}")
    return "\n".join(lines) or "There are no open loops."


def read_decisions(agent: ServedAgent) -> str:
    """Return the decisions and failed approaches of the relay, with new proposals."""
    relay = _merge_relay(agent)
    if relay is None:
        return "There are no decisions yet."
    decided = [_render_decision(each) for each in decision_ledger.read_decisions(relay)]
    failed = (relay.content(RelayField.FAILED_APPROACHES) or "").strip()
    parts = [
        "\n".join(decided) or "There are no decisions yet.",
        f"{RelayField.FAILED_APPROACHES}:\n{failed}" if failed else "",
    ]
    return "\n\n".join(filter(None, parts))


def read_questions(agent: ServedAgent) -> str:
    """Return the agent's questions to a person, newest last, with their answers."""
    known, now = agent.read().projection, clock.read_clock()
    asked = sorted(known.questions.values(), key=lambda question: question.seq)
    lines = [render_question(known, question, now) for question in asked]
    return "\n".join(lines) or "There are no questions."


def render_question(known: Projection, question: QuestionAsked, now: datetime) -> str:
    """Return one question with its state and answer, on one line."""
    state = questions.find_question_state(known, question, now)
    answer = known.answers.get(question.question)
    words = f": {answer.text or answer.choice}" if answer and state == "answered" else ""
    return to_one_line(f"{question.question} ({state}): {question.text} → {state}{words}")


def search_notes(agent: ServedAgent, words: str, limit: int = SEARCH_HITS) -> str:
    """Return the turns, relays and decisions that contain all words, newest first."""
    if agent.project is None:
        raise UsageError(
            "search does not work in this sandbox, which hides the index",
            hint="read the relay and the decisions instead",
        )
    from rekindle.api.home import Home  # noqa: PLC0415 - only search needs it

    with Home(agent.path) as home:
        hits = home.search(words.split(), agents=[agent.name], most=limit).hits
    lines = (
        to_one_line(f"{hit.at[:16]} {hit.who}, {hit.kind} {hit.number}: {hit.excerpt}")
        for hit in hits
    )
    return "\n".join(lines) or "Nothing found. Use fewer words, or `word*` for a beginning."


def _merge_relay(agent: ServedAgent) -> Relay | None:
    data, notes = agent.document("relay"), agent.read().projection.new_notes
    if data is None:
        return relay_notes.compose_notes(notes)
    return relay_notes.merge_notes(relays.parse(data), notes)


def _render_decision(decision: decision_ledger.LedgerDecision) -> str:
    made = f" ({decision.made.isoformat()})" if decision.made else ""
    return f"- {decision.text}{made}"
