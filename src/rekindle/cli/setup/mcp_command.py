"""`rekindle mcp`: serve an agent's notes to its CLI."""

import click


@click.command()
def mcp() -> None:
    """Serve an agent's notes over MCP, on standard input and output.

    An agent CLI starts this command. Its agent can then read the relay, loops, decisions, status
    and questions, propose notes, and ask you a question. It cannot change anything else. For
    Claude Code: `claude mcp add rekindle -- rekindle mcp`.

    The server serves the agent that `rekindle run` launched, or else the agent that works in the
    current folder.
    """
    from rekindle.mcp.server import serve  # noqa: PLC0415 - keeps `--help` fast

    serve()
