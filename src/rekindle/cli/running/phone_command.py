"""`rekindle phone`: answer agents' questions from a phone."""

import sys

import click

from rekindle import config
from rekindle.cli.options import json_option
from rekindle.cli.output import echo, print_json
from rekindle.documents.phone.phone_records import ChatRight
from rekindle.errors import RekindleError
from rekindle.formats.counts import render_count
from rekindle.policy.phone.chat_rights import RIGHTS
from rekindle.stores.folders.phone_files import PhoneFiles
from rekindle.thresholds.phone_limits import PHONE_PAIRING_SECONDS
from rekindle.wiring.access.operator_check import refuse_agent_of
from rekindle.wiring.access.trust_checks import list_trusted


@click.group()
def phone() -> None:
    """Answer agents' questions from a phone, by Telegram or ntfy.

    One bridge serves all projects that you trust on this host. Each chat may `read`, `answer` or
    `operate`. The service can read all messages, so Rekindle redacts and shortens them.
    """
    command = click.get_current_context().command_path
    for folder in list_trusted():
        try:
            agents = config.list_agents(folder)
        except RekindleError:
            agents = []  # a broken manifest does not matter here
        refuse_agent_of(folder, agents, command)


@phone.command(short_help="Set up a service, and store its token.")
@click.argument("service", default="telegram")
@click.option("--server", help="Address of your own server, such as https://ntfy.example.")
def setup(service: str, server: str | None) -> None:
    """Set up SERVICE (telegram or ntfy), and check that it works.

    For Telegram, create a bot with @BotFather, then paste its token. For ntfy, paste an access
    token of your server. The command reads the token from the terminal or from standard input, and
    stores it in a file that only you can read.
    """
    from rekindle.phone.set_up import set_up_service  # noqa: PLC0415 - keeps the start fast

    if sys.stdin.isatty():
        token: str = click.prompt(f"Token for {service}", hide_input=True, default="")
    else:
        token = sys.stdin.readline()
    name, settings = set_up_service(service, token.strip(), server)
    echo(f"✓ {service}: {name} works")
    if reply_topic := settings.get("reply_topic"):
        echo(f"Next: subscribe to the topic {name} in the ntfy app,")
        echo(f"      let everyone write to the topic {reply_topic} on the server,")
        echo("      then start the bridge: rekindle phone run")
    else:
        echo("Next: rekindle phone pair")


@phone.command(short_help="Print a code that pairs one chat.")
@click.option(
    "--may",
    type=click.Choice(RIGHTS),
    default="answer",
    show_default=True,
    help="What the chat may do: `answer` includes `read`, and `operate` includes both.",
)
def pair(may: ChatRight) -> None:
    """Print a code that pairs one chat with this host. It works once, for ten minutes.

    Send the code to your bot while the bridge is running. Only the person who sends it is paired,
    even in a group.
    """
    from rekindle.phone.set_up import offer_pairing  # noqa: PLC0415 - keeps the start fast

    code, bots = offer_pairing(may)
    echo(f"Send this to {' or '.join(bots)} within {PHONE_PAIRING_SECONDS / 60:.0f} minutes:")
    echo(f"  /pair {code}")
    if not PhoneFiles().is_running():
        echo("Next: start the bridge: rekindle phone run")


@phone.command(short_help="Run the bridge, until you stop it.")
def run() -> None:
    """Send open questions to the paired chats, and record the answers.

    The bridge serves all projects that you trust on this host. If it is killed, start it again: it
    sends every question that was not sent, and counts no answer twice.
    """
    from rekindle.phone.run_bridge import run_bridge  # noqa: PLC0415 - keeps the start fast

    run_bridge(lambda words: echo(words, err=True))


@phone.command(short_help="Show the services, the paired chats and problems.")
@json_option
def status(as_json: bool) -> None:
    """Show the services, the paired chats, and whether the bridge works. Tokens are not shown."""
    files = PhoneFiles()
    settings, state, is_running = files.read_settings(), files.read_state(), files.is_running()
    waiting = sum(1 for sent in state.questions.values() if not sent.is_closed)
    chats = [
        {"service": chat.channel, "chat": chat.chat, "user": chat.user, "may": chat.right}
        for chat in settings.chats
    ]
    if as_json:
        print_json(
            {
                "running": is_running,
                "services": list(settings.channels),
                "chats": chats,
                "waiting": waiting,
                "problems": state.problems,
            }
        )
        return
    if not settings.channels:
        echo("No phone is set up.\nNext: rekindle phone setup")
        return
    echo(f"{', '.join(settings.channels)}: {'running' if is_running else 'not running'}")
    for chat in chats:
        user = f", user {chat['user']}" if chat["user"] else ""
        echo(f"  {chat['service']} chat {chat['chat']}{user}: may {chat['may']}")
    echo(f"{render_count(waiting, 'message')} waiting for an answer")
    for words in state.problems.values():
        echo(f"! {words}")
    if not settings.chats:
        echo("Next: rekindle phone pair")
    elif not is_running:
        echo("Next: rekindle phone run")


# The id of a group starts with a minus sign.
@phone.command(
    short_help="Remove a chat, or a service with its token.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("name", metavar="CHAT|CHAT/USER|SERVICE")
def remove(name: str) -> None:
    """Remove a chat, one person in a chat, or a service with its token and its chats, at once.

    `rekindle phone status` lists the ids.
    """
    from rekindle.phone.set_up import remove_named  # noqa: PLC0415 - keeps the start fast

    remove_named(name)
    echo(f"✓ removed {name}")
