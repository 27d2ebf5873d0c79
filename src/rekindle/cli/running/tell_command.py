"""`rekindle tell`: send a message to an agent without interrupting it."""

import click

from rekindle.cli.options import json_option, open_handle
from rekindle.cli.output import echo, print_json


@click.command()
@click.argument("agent")
@click.argument("text", nargs=-1, required=True)
@json_option
def tell(agent: str, text: tuple[str, ...], as_json: bool) -> None:
    """Send TEXT to AGENT without interrupting it.

    A running session receives the message with the result of its next tool call, if its CLI permits
    this. Otherwise, the message is in the next prompt. A run does not end while a message waits,
    unless it has reached its last cycle. To answer a question, use `rekindle answer`.

    An agent that `rekindle run` started receives the message exactly once. A session that you start
    yourself may receive it again, if Rekindle could not record that the last one received it.
    """
    handle = open_handle(agent)
    sent = handle.tell(" ".join(text))
    if as_json:
        print_json({"agent": handle.name, **sent._asdict()})
        return
    echo(f"✓ {handle.name}: message {sent.message} is recorded. It will arrive {sent.arrives}.")
    echo(f"Next: `rekindle logs -f {handle.name}` shows when it was received.")
