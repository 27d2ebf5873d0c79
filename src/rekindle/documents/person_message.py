"""A person's message to an agent, as the agent reads it.

The first line names the message. A transcript that has this line shows that the session has
received the message. The line is plain ASCII without quotes, so it is the same in JSON, and it does
not occur in the agent's log, which the agent can read.
"""

from rekindle.documents.events import MessageSent


def render_message(sent: MessageSent) -> str:
    """Return the message for the agent's session."""
    return (
        f"{render_sign(sent.message)}, {sent.ts:%Y-%m-%d %H:%M} UTC]\n{sent.text.strip()}\n"
        "[end of the message; consider it in what you do next, and continue with your task]"
    )


def render_sign(message: str) -> str:
    """Return the beginning of the first line, which occurs nowhere else."""
    return f"[Rekindle: message {message} from a person"
