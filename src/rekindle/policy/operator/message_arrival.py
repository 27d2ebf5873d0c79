"""Tell when an agent will receive a person's message."""

from rekindle.documents.screens.agent_row import AgentRow


def describe_arrival(row: AgentRow, *, is_supervised: bool, takes_messages: bool) -> str:  # noqa: PLR0911 - one return per state
    """Return when the agent will receive a message that is sent now.

    `takes_messages` is whether the CLI can give a message to its running session.
    """
    match row.state:
        case "running" if not is_supervised:
            return "at the start of its next session, because no supervisor runs this one"
        case _ if not is_supervised:
            return f"when you start it: `{row.command or f'rekindle run {row.agent}'}`"
        case "running" if takes_messages:
            return "with the result of its next tool call, or in its next prompt"
        case "running":
            return f"in its next prompt, because {row.harness} takes no messages while it works"
        case "waiting" if row.waits_until is not None:
            return f"when its wait ends, at {row.waits_until.astimezone():%H:%M} ({row.reason})"
        case "needs you":
            command = row.command or f"rekindle questions {row.agent}"
            return f"when it continues, after you answer: `{command}`"
        case _:
            return "in its next prompt"
