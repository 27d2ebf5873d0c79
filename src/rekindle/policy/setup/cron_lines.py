"""Find the crontab lines that start Rekindle, alone or together with other commands."""

import re
import shlex
from collections.abc import Iterable
from enum import Enum
from itertools import pairwise, takewhile
from posixpath import normpath

import msgspec

from rekindle.policy.setup.agent_dirs import is_inside

PROGRAM = "rekindle"
_COMMAND = re.compile(r"\s*(?:@\S+|[^\s=#]+(?:\s+[^\s=]+){4})\s+(?P<command>\S.*)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PYTHON = re.compile(r"python[\d.]*")
_REDIRECTION = re.compile(r"[&<>]*[<>][&<>]*")
_OPERATOR = re.compile(r"[();<>|&]+")
_SUBSTITUTION = ("`", "$(", "<(", ">(")


class CronUse(Enum):
    """Ways in which a crontab line can use Rekindle."""

    ALONE = "alone"
    """The line has a single Rekindle command, optionally after `cd FOLDER`."""
    AMONG_OTHERS = "among others"
    """The line also starts other commands, or cannot be understood."""


class _CronCommand(msgspec.Struct):
    """One command in a crontab line, without redirections, and the shell operator before it."""

    operator: str
    words: list[str]


def find_use(line: str, folder: str = "") -> CronUse | None:
    """Return how a crontab line uses Rekindle, or None if it does not.

    If `folder` is given, only uses in or below that folder count. A line's folder is the argument
    of `cd`, not the path of the program or of a log file.
    """
    match = _COMMAND.fullmatch(line)
    if match is None:
        return None
    text = match["command"]
    try:
        commands, is_understood = _split_line(text), not any(sign in text for sign in _SUBSTITUTION)
    except ValueError:  # an unclosed quote, or a backslash at the end
        commands, is_understood = _split_line(re.sub(r"""["'\\]""", "", text)), False
    if not any(map(_mentions_program, commands)):
        return None
    if folder and not any(_changes_folder_to(folder, command.words) for command in commands):
        return None
    if is_understood and _is_alone(commands):
        return CronUse.ALONE
    return CronUse.AMONG_OTHERS


def remove_cron_lines(lines: Iterable[str], removed: Iterable[str]) -> list[str]:
    unwanted = set(removed)
    return [line for line in lines if line not in unwanted]


def _split_line(text: str) -> list[_CronCommand]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    commands, is_target = [_CronCommand("", [])], False
    for word in lexer:
        if is_target:
            is_target = False
        elif _REDIRECTION.fullmatch(word):
            is_target = True
        elif _OPERATOR.fullmatch(word):
            commands.append(_CronCommand(word, []))
        else:
            commands[-1].words.append(word)
    return [command for command in commands if command.words]


def _is_alone(commands: list[_CronCommand]) -> bool:
    match commands:
        case [_CronCommand(words=words)]:
            return _starts_program(words)
        case [_CronCommand(words=["cd", _]), _CronCommand(operator="&&" | ";", words=words)]:
            return _starts_program(words)
    return False


def _starts_program(words: list[str]) -> bool:
    words = _drop_assignments(words)
    program = words[0].rpartition("/")[2] if words else ""
    if not _PYTHON.fullmatch(program):
        return program == PROGRAM
    options = list(takewhile(lambda word: word.startswith("-"), words[1:]))
    return options[-1:] == ["-m"] and words[1 + len(options) :][:1] == [PROGRAM]


def _mentions_program(command: _CronCommand) -> bool:
    """Return whether a command starts Rekindle, or may start it through another program."""
    if command.words[0] == "cd":
        return False
    mentions = (word == PROGRAM or word.endswith(f"/bin/{PROGRAM}") for word in command.words)
    return _starts_program(command.words) or any(mentions)


def _changes_folder_to(folder: str, words: list[str]) -> bool:
    return any(
        word == "cd" and following.startswith("/") and is_inside(normpath(following), folder)
        for word, following in pairwise(words)
    )


def _drop_assignments(words: list[str]) -> list[str]:
    count = 0
    while count < len(words) and _ASSIGNMENT.match(words[count]):
        count += 1
    return words[count:]
