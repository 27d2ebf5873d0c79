"""Actions of the screens. Each one is a `rekindle` command, which is shown before it is run."""

import shlex
from collections.abc import Callable
from typing import NamedTuple

from rekindle.api.agent import Agent
from rekindle.api.restart_agents import RestartResult
from rekindle.errors import UsageError

_START = "start it with `rekindle up {}`"
_RESTARTED: dict[RestartResult, str] = {
    "supervised": "will be started again",
    "unsupervised": f"is not running; {_START}",
    "new": f"was never started; {_START}",
    "done": f"is done; {_START}",
    "stopped": f"was stopped; {_START}",
}


class ActionTarget(NamedTuple):
    """What an action is applied to."""

    agent: str
    item: str = ""
    """Id of a question or a loop, unit of a cap, or empty."""
    text: str = ""
    """Answer, amount or reason, or empty."""


class AgentAction(NamedTuple):
    """An action, its command and its effect."""

    key: str
    label: str
    about: str
    """What happens, as a sentence."""
    words: Callable[[ActionTarget], list[str]]
    run: Callable[[Agent, ActionTarget], str]
    """Runs the action, and returns the result as words that follow the agent's name."""
    field: str = ""
    """Name of the text that a person must enter, or empty."""

    def render_command(self, target: ActionTarget) -> str:
        """Return the command that does the same."""
        placeholder = target._replace(text=target.text or self.field.upper())
        return shlex.join(["rekindle", *self.words(placeholder)])


def _answer(agent: Agent, target: ActionTarget) -> str:
    answer = agent.answer(target.text, question=target.item)
    if answer is None:
        return "its next cycle will get the message"
    if not answer.seq:
        return "the answer is saved, but the supervisor has not recorded it yet"
    return "the answer is recorded"


def _tell(agent: Agent, target: ActionTarget) -> str:
    return f"the message will arrive {agent.tell(target.text).arrives}"


def _stop(agent: Agent, _target: ActionTarget) -> str:
    return "stopped" if agent.stop() else "was not running, and stays stopped"


def _restart(agent: Agent, _target: ActionTarget) -> str:
    return _RESTARTED[agent.restart()].format(agent.name)


def _restart_fresh(agent: Agent, _target: ActionTarget) -> str:
    return _RESTARTED[agent.restart(fresh=True)].format(agent.name)


def _hand_off(agent: Agent, _target: ActionTarget) -> str:
    agent.hand_off()
    return "its session will stop at the next boundary, and a fresh one continues"


def _raise_budget(agent: Agent, target: ActionTarget) -> str:
    try:
        amount = float(target.text.removeprefix("$").replace(",", ""))
    except ValueError:
        raise UsageError(
            f"{target.text!r} is not a number", hint="enter the new cap, such as 20"
        ) from None
    if target.item == "tokens":
        agent.raise_budget(tokens=int(amount))
    else:
        agent.raise_budget(usd=amount)
    return f"the run's cap is now {amount:,.10g} {target.item}"


def _resolve(agent: Agent, target: ActionTarget) -> str:
    change = agent.loops.resolve(target.item, target.text)
    return f"{change.loop}: {change.outcome}"


ACTIONS: dict[str, AgentAction] = {
    "answer": AgentAction(
        "a",
        "answer",
        "The agent's next cycle gets your answer.",
        lambda target: ["answer", target.item or target.agent, target.text],
        _answer,
        field="answer",
    ),
    "approve": AgentAction(
        "y",
        "approve",
        "You agree: allow, accept or retry, whichever the question offers.",
        lambda target: ["approve", target.item],
        _answer,
    ),
    "deny": AgentAction(
        "n",
        "deny",
        "You refuse: deny or stop, whichever the question offers.",
        lambda target: ["deny", target.item],
        _answer,
    ),
    "tell": AgentAction(
        "t",
        "tell",
        "The agent is not interrupted. It gets your message at the next opportunity.",
        lambda target: ["tell", target.agent, target.text],
        _tell,
        field="message",
    ),
    "stop": AgentAction(
        "s",
        "stop",
        "The agent stops, and stays stopped until you start it again.",
        lambda target: ["stop", target.agent],
        _stop,
    ),
    "restart": AgentAction(
        "r",
        "restart",
        "The agent continues now, in the same session if it can be resumed.",
        lambda target: ["restart", target.agent],
        _restart,
    ),
    "fresh": AgentAction(
        "f",
        "restart fresh",
        "The agent continues now in a fresh session. Only the context window is lost.",
        lambda target: ["restart", "--fresh", target.agent],
        _restart_fresh,
    ),
    "hand_off": AgentAction(
        "h",
        "hand off",
        "The session stops at the next boundary, and a fresh one continues from a checkpoint.",
        lambda target: ["handoff", target.agent],
        _hand_off,
    ),
    "budget": AgentAction(
        "b",
        "budget",
        "The cap of this run is raised. The next run has the cap in rekindle.yaml again.",
        lambda target: ["budget", target.agent, f"--{target.item}", target.text],
        _raise_budget,
        field="amount",
    ),
    "resolve": AgentAction(
        "x",
        "resolve",
        "The loop is closed, and your reason is recorded.",
        lambda target: ["resolve", "--agent", target.agent, target.item, target.text],
        _resolve,
        field="reason",
    ),
}
