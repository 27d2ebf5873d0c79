"""How a hook stops a CLI between two turns."""

import msgspec


class Brake(msgspec.Struct, frozen=True, kw_only=True):
    """How to stop a CLI between two turns without interrupting a tool call.

    A hook is a safe place to stop, because the CLI does nothing else while it waits for the hook.
    The hook reads the usage from the last transcript line that reports it. These fields describe
    that line, so the hook does not need to know the CLI.
    """

    event: str
    """Hook event that fires between two turns."""
    signs: tuple[str, ...]
    """Texts that every transcript line with the window's usage contains."""
    after: str
    """Text that precedes the counts in a line with the window's usage."""
    counts: tuple[str, ...]
    """Keys whose numbers add up to the number of used tokens."""
    window: str = ""
    """Key of the window's size in the line with the counts; empty if that line does not have it."""
    models: tuple[str, ...] = ()
    """Possible keys for the requested model, in order of preference; empty if the CLI has only one
    model.
    """
    answer: str = ""
    """Hook output that stops the CLI; empty if the hook delays the next call instead."""
    below: str = ""
    """Key that only sub-agents' payloads have; empty if sub-agents have their own transcripts."""
    call: str = ""
    """Payload key that lists the finished calls, which may not be in the transcript yet."""
    calls: tuple[str, ...] = ()
    """Text before the id of a starting call, and text before the id of a finished call. They are
    used for an event that may also fire during a turn, when a person submits a prompt.
    """
    asides: str = ""
    """Folder next to the transcript that contains the background sub-agents' transcripts."""
    settled: str = ""
    """Text after the counts once the turn's calls have finished; empty if the event implies it."""
    told_at: str = ""
    """Hook event whose output can add a message for the agent to the session."""
    told_as: str = ""
    """The CLI's own name for that event."""
    void: str = ""
    """Start of a line that makes all earlier lines irrelevant."""
    is_kept: bool = False
    """Whether the transcript is complete when the hook is called, in which case nothing is lost if
    the CLI is stopped immediately.
    """
    beside: tuple[str, ...] = ()
    """Text at the start of a turn in a sub-agent's transcript, and text at its end. They are used
    for sub-agents that work in parallel to the main thread, because a session must not be stopped
    while one of them is working. Empty if the main thread waits for all of its sub-agents.
    """
