"""Every command takes its agent as an argument."""

import click
import pytest

from conftest import RELAY
from rekindle.cli import main

NEEDS_AN_OPTION = {"loops add", "resolve", "search"}
"""Commands whose last argument is a text of any number of words."""


def walk(group, path=()):
    """Yield every command of a group with its path."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield " ".join((*path, name)), command
        if isinstance(command, click.Group):
            yield from walk(command, (*path, name))


COMMANDS = dict(walk(main.app))


@pytest.fixture
def rekindle(tmp_path, monkeypatch, capsys):
    """Run a command in a project with two agents; return its code and its output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REKINDLE_AGENT", raising=False)
    for name in ("docs", "trades"):
        assert main.run(["init", name, "--yes"]) == 0
    (tmp_path / "relay.md").write_text(RELAY)
    assert main.run(["loops", "add", "rate-limit", "How many?", "-a", "trades"]) == 0
    capsys.readouterr()

    def run(*arguments):
        code = main.run(list(arguments))
        out, err = capsys.readouterr()
        return code, out + err

    return run


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in NEEDS_AN_OPTION])
def test_a_command_with_the_option_has_the_argument_too(name):
    """Its usage line names the agent."""
    command = COMMANDS[name]
    if any("--agent" in parameter.opts for parameter in command.params):
        pieces = " ".join(command.collect_usage_pieces(click.Context(command)))
        assert "AGENT" in pieces


@pytest.mark.parametrize(
    ("line", "code", "part"),
    [
        ("events trades", 0, "loop.added"),
        ("logs trades", 0, ""),
        ("status trades", 0, "trades  (claude-code)"),
        ("loops trades", 0, "rate-limit"),
        ("loops docs", 0, "No open loops"),
        ("loops --json trades", 0, '"id":"rate-limit"'),
        ("loops trades --json", 0, '"id":"rate-limit"'),
        ("loops -a trades", 0, "rate-limit"),
        ("loops trads", 7, "did you mean trades?"),
        ("loops", 2, "`--agent trades`"),
        ("loops ad x y", 2, "No such command 'ad'"),
        ("relay set relay.md trades", 0, "relay committed"),
        ("relay set relay.md", 2, "`--agent trades`"),
        ("relay check trades", 7, "trades has no relay yet"),
        ("relay check relay.md", 0, "✓"),
        ("relay check nothing.md", 2, "'nothing.md' does not exist"),
        ("relay show trades", 7, "trades has no relay yet"),
        ("relay history trades", 0, "trades has no relay yet"),
        ("decisions trades", 0, ""),
        ("questions trades", 0, ""),
        ("transcript trades", 7, "trades has no transcript yet"),
        ("handoff trades", 9, "trades is not running"),
        ("stop trades", 0, "trades: is not running"),
        ("hooks install trades", 0, "hooks installed"),
        ("hooks uninstall trades", 0, ""),
        ("hooks install docs --agent trades", 2, "name different agents"),
        ("init books --yes", 0, "added books"),
        ("init books --agent trades", 2, "name different agents"),
        ("adopt relay.md trades", 0, ""),
        ("keep 0 trades", 7, "there is no session 0"),
        ("adopt relay.md", 2, "`rekindle adopt PATH trades`"),
        ("summarize relay.md trades --as relay --mechanical", 4, "is not a transcript"),
    ],
)
def test_the_agent_is_an_argument(rekindle, line, code, part):
    ended, printed = rekindle(*line.split())
    assert ended == code, printed
    assert part in printed
