"""Complete commands, options and agent names in the shell, using click's scripts."""

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    shell_complete,
)

_AGENT_ARGUMENTS = frozenset({"agent", "agents", "named"})
_AGENT_OPTIONS = frozenset({"-a", "--agent"})

if TYPE_CHECKING:
    _Base = ShellComplete
else:
    _Base = object


class _AgentNames(_Base):
    """Completes agent names for commands that take an agent, if click has no suggestion."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        if args and args[-1] in _AGENT_OPTIONS:
            return _complete_agents(incomplete)
        items = super().get_completions(args, incomplete)
        return items or (_complete_agents(incomplete) if _takes_agent(self.cli, args) else [])


class _BashNames(_AgentNames, BashComplete): ...


class _ZshNames(_AgentNames, ZshComplete): ...


class _FishNames(_AgentNames, FishComplete): ...


def complete(app: click.Command, variable: str, request: str) -> int:
    """Answer the shell's completion request in `variable`, and return the exit code."""
    for kind in (_BashNames, _ZshNames, _FishNames):
        add_completion_class(kind)
    return shell_complete(app, {}, "rekindle", variable, request)


def _takes_agent(command: click.Command | None, words: list[str]) -> bool:
    """Return whether the typed command takes an agent as an argument."""
    for word in words:
        if not isinstance(command, click.Group):
            break
        if not word.startswith("-"):
            command = command.get_command(click.Context(command), word)
    if command is None or isinstance(command, click.Group):
        return False
    names = {
        parameter.name for parameter in command.params if isinstance(parameter, click.Argument)
    }
    return bool(names & _AGENT_ARGUMENTS)


def _complete_agents(incomplete: str) -> list[CompletionItem]:
    from rekindle import config  # noqa: PLC0415 - commands and options are completed without it
    from rekindle.errors import RekindleError  # noqa: PLC0415 - as above

    # A shell would print an error message in the middle of the line that the user is typing.
    with suppress(RekindleError, OSError):
        agents = config.load_project(Path.cwd()).declared_agents
        return [CompletionItem(name) for name in agents if name.startswith(incomplete)]
    return []
