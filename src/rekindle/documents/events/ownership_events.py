"""Events about an agent's owner and about the workspace that the owner pushes."""

from typing import Any

from rekindle.documents.events.event import Event


class AgentCreated(Event, frozen=True, kw_only=True, tag="agent.created"):
    summary = "An agent's folder was created."
    agent: str


class AgentReceived(Event, frozen=True, kw_only=True, tag="agent.received"):
    summary = "The agent's state was imported from another store, and the log continues from there."
    known: dict[str, Any]
    """State derived from all events up to and including this one."""


class OwnerChanged(Event, frozen=True, kw_only=True, tag="owner.changed"):
    summary = "A host took over the agent. From now on, the log refuses older generations."
    host: str
    previous: str
    """Name of the previous owner's host."""
    left: str = ""
    """Why the previous host did not push its latest work, or empty if it did."""


class WorkspacePushed(Event, frozen=True, kw_only=True, tag="workspace.pushed"):
    summary = "The agent's workspace was pushed, so another host can continue from it."
    revision: str
    """Commit that holds the work tree, including uncommitted changes."""
    head: str = ""
    """Commit that was checked out, or empty if there was none yet."""
    branch: str = ""
    """Branch that was checked out, or empty for a detached HEAD."""
    claim: int = 0
    """Generation for which the host claimed the work branch."""


class WorkspacePushFailed(Event, frozen=True, kw_only=True, tag="workspace.push_failed"):
    summary = "The agent's workspace could not be pushed. It exists only on its host."
    words: str
