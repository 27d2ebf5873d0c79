"""Ask for a handoff to a fresh session."""

from rekindle.api.agent_store import AgentStore
from rekindle.config import Project
from rekindle.documents.events import HandoffRequested
from rekindle.errors import AgentError
from rekindle.policy.projection import sessions
from rekindle.system import clock
from rekindle.wiring.open_store import find_harness


def request_handoff(project: Project, store: AgentStore, name: str) -> None:
    """Let an agent's session stop between two turns, and a fresh one continue.

    Raises:
        AgentError: The agent is not running, or its CLI cannot be stopped between two turns.
    """
    projection = store.read(name).projection
    newest = sessions.find_newest_launch(projection.attempts)
    if not store.is_supervised(name) or newest is None or newest.exit:
        raise AgentError(
            f"{name} is not running, so there is nothing to hand off",
            hint=f"`rekindle status {name}` shows why it is not running, and how to continue",
        )
    entry = project.manifest.agents[name]
    stays = entry.mode == "stay"
    launch = next(mark for mark, attempt in projection.attempts.items() if attempt is newest)
    is_heard = bool(sessions.find_launched_session(projection.lives, launch))
    if find_harness(project, name).brake(interactive=stays) is None or not is_heard:
        where = " in a terminal" if stays else ""
        reason = (
            "" if is_heard else ": none of its hooks has reported yet (`rekindle hooks install`)"
        )
        raise AgentError(
            f"{entry.harness} cannot be stopped between two turns{where}{reason}",
            hint=f"`rekindle restart --fresh {name}` stops it now and starts a fresh session",
        )
    store.submit(name, HandoffRequested(ts=clock.read_clock()))
