"""Events about an agent's owner and about the workspace that the owner pushes."""

from typing import Any

from rekindle.documents.events.event import Event


class AgentCreated(Event, frozen=True, kw_only=True, tag="agent.created"):
    summary = "An agent's folder was created."
    agent: str


class AgentReceived(Event, frozen=True, kw_only=True, tag="agent.received"):
    summary = "The log received the state of an agent from elsewhere, and continues from it."
    known: dict[str, Any]
    """Projection of all events up to and including this one."""


class OwnerChanged(Event, frozen=True, kw_only=True, tag="owner.changed"):
    summary = "A host took over the agent; from here on, the log refuses older generations."
    host: str
    previous: str
    """Name of the previous owner's host."""
    left: str = ""
    """Reason why the latest work was not pushed from the previous host; empty if it was pushed."""


class WorkspacePushed(Event, frozen=True, kw_only=True, tag="workspace.pushed"):
    summary = "The agent's workspace was pushed; another host can continue from it."
    revision: str
    """Commit that holds the work tree, including uncommitted changes."""
    head: str = ""
    """Commit that was checked out; empty if there was no commit yet."""
    branch: str = ""
    """Branch that was checked out; empty if none was."""
    claim: int = 0
    """Generation for which the host had claimed the work branch."""


class WorkspacePushFailed(Event, frozen=True, kw_only=True, tag="workspace.push_failed"):
    summary = "The agent's workspace could not be pushed; it exists only on its host."
    words: str
