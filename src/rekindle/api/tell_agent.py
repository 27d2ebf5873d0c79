"""Send a message to an agent without interrupting it."""

import secrets
from typing import TYPE_CHECKING, NamedTuple

from rekindle.api.agent_store import read_known
from rekindle.api.operator import Operator
from rekindle.documents.events import MessageSent
from rekindle.errors import AgentError
from rekindle.formats.identifiers import strip_invisible
from rekindle.policy.operator import answers
from rekindle.policy.operator.build_row import RowInputs, build_row
from rekindle.policy.operator.message_arrival import describe_arrival
from rekindle.policy.projection import sessions
from rekindle.policy.projection.projection import Projection
from rekindle.system import clock, host
from rekindle.thresholds.message_limits import MESSAGE_CHARACTERS, MESSAGES_WAITING
from rekindle.wiring.access.operator_check import refuse_agent
from rekindle.wiring.open_store import find_harness

if TYPE_CHECKING:
    from rekindle.api.home import Home


class SentMessage(NamedTuple):
    """A recorded message, and when the agent will receive it."""

    message: str
    """Message id, as in `rekindle logs`."""
    arrives: str
    """When the agent will receive it, such as "when you start it: `rekindle run trades`"."""


def tell_agent(home: "Home", agent: str, text: str, operator: Operator) -> SentMessage:
    """Send a message to an agent. The agent receives it once, at the next opportunity.

    A running session receives it with the result of its next tool call, if its CLI permits this.
    Otherwise, the message is in the prompt of the next launch. The log shows when the agent has
    received it.

    Raises:
        UsageError: The message is empty or too long.
        AgentError: Too many messages already wait for this agent.
        NotFoundError: The project has no such agent.
        CalledByAgentError: One of the project's agents runs this program.
    """
    refuse_agent(home.project, "rekindle tell")
    name, words = home.project.require_agent(agent), strip_invisible(text).strip()
    answers.require_own_words(words)
    answers.require_length(words, MESSAGE_CHARACTERS, "a message")
    if len(read_known(home.store, name).waiting_messages) >= MESSAGES_WAITING:
        raise AgentError(
            f"{MESSAGES_WAITING} messages already wait for {name}",
            hint=f"`rekindle status {name}` shows why it has not received them",
        )
    home.store.create(name)
    message = secrets.token_hex(4)
    sent = MessageSent(
        ts=clock.read_clock(),
        message=message,
        text=words,
        by=operator.by or host.identify_user(),
        origin=operator.origin,
    )
    home.store.submit(name, sent)
    return SentMessage(message, _describe_arrival(home, name))


def _describe_arrival(home: "Home", name: str) -> str:
    known, is_supervised = read_known(home.store, name), home.store.is_supervised(name)
    row = build_row(
        known,
        RowInputs(clock.read_clock(), is_supervised=is_supervised),
        home.project.manifest.agents[name].harness,
    )
    takes = is_supervised and _takes_messages(home, name, known)
    return describe_arrival(row, is_supervised=is_supervised, takes_messages=takes)


def _takes_messages(home: "Home", name: str, known: Projection) -> bool:
    """Return whether the running session can receive a message: its hooks have reported."""
    stays = home.project.manifest.agents[name].mode == "stay"
    brake = find_harness(home.project, name).brake(interactive=stays)
    newest = sessions.find_newest_launch(known.attempts)
    launch = next((mark for mark, record in known.attempts.items() if record is newest), "")
    is_heard = bool(sessions.find_launched_session(known.lives, launch))
    return brake is not None and bool(brake.told_at) and is_heard
