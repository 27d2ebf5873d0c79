"""Run the `rekindle` command, and turn every error into a message and an exit code."""

import gc
import io
import os
import re
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import click

from rekindle import __version__
from rekindle.cli.command_table import (
    COMMAND_GROUPS,
    COMMANDS,
    OTHER_NAMES,
)
from rekindle.cli.output import echo, style_text
from rekindle.errors import RekindleError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

INTERRUPTED = 130
CRASHED = 70
OUTPUT_GONE = 141
COMPLETION_VARIABLE = "_REKINDLE_COMPLETE"
"""Environment variable that a shell sets to request completions, for example to `bash_source` or
`zsh_complete`.
"""

_MAY_BE_SECRET = re.compile(r"\S*\d\S*|\S{20,}")
"""Pattern for words to hide if redaction itself fails. It deliberately matches too much."""

_ERROR = style_text("Error:", fg="red", bold=True)


class LazyGroup(click.Group):
    """Command group that imports a command only when it is called, and lists commands by theme."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name].location.partition(":")
        command: click.Command = getattr(import_module(f"rekindle.cli.{module}"), name)
        # Imported modules live until the process exits, so the garbage collector can skip them.
        gc.freeze()
        gc.enable()
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(_describe_unknown_command(name))
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete command names from the table, because click would import every command."""
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only completion needs it

        commands = [
            CompletionItem(name, help=entry.summary)
            for name, entry in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return [*commands, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for title, group in COMMAND_GROUPS.items():
            with formatter.section(title):
                formatter.write_dl(
                    [(name.ljust(width), entry.summary) for name, entry in group.items()]
                )


def _describe_unknown_command(name: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only a typo needs it

    matches = [OTHER_NAMES[name]] if name in OTHER_NAMES else get_close_matches(name, COMMANDS)
    if not matches:
        return f"No such command {name!r}."
    suggestions = " or ".join(f"`rekindle {match}`" for match in matches)
    return f"No such command {name!r}. Did you mean {suggestions}?"


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96},
    epilog="`rekindle COMMAND --help` explains a command. Exit codes: 0 success, 2 wrong command"
    " line, 3 rekindle.yaml, 4 damaged document, 5 file system, 6 agent in use, 7 not found,"
    " 8 failed check, 9 agent or program failed, 10 fleet engine, 11 folder not trusted,"
    " 14 called by an agent.",
)
@click.version_option(__version__, prog_name="rekindle")
def app() -> None:
    """Keep AI agents working through crashes, usage limits and full context windows."""


def main() -> NoReturn:
    code = run(sys.argv[1:])
    if "temporalio" in sys.modules:
        # The engine client's native threads may still call into Python. Without this exit, one
        # command in four crashed during interpreter shutdown.
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def run(arguments: list[str]) -> int:  # noqa: PLR0911 - one for each exit code
    """Run one command and return its exit code. Every error is printed as a message."""
    try:
        _tolerate_print_errors()
        if request := os.environ.get(COMPLETION_VARIABLE):
            from rekindle.cli.completion import complete  # noqa: PLC0415 - only shells need it

            return complete(app, COMPLETION_VARIABLE, request)
        code = app.main(arguments, prog_name="rekindle", standalone_mode=False)
        sys.stdout.flush()
    except click.UsageError as error:
        if error.ctx is None or isinstance(error, click.exceptions.NoArgsIsHelpError):
            echo(_redact_error(error.format_message()), err=True)
            return error.exit_code
        _print_error(error.format_message(), _make_usage_hint(error, error.ctx))
        return error.exit_code
    except click.ClickException as error:
        words = io.StringIO()
        error.show(words)
        echo(_redact_error(words.getvalue().removesuffix("\n")), err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        echo("Stopped.", err=True)
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The program that reads the pipe (head, less) has exited, so click raises SystemExit. Drop
        # the buffered output, or Python would report the broken pipe again at exit.
        _drop_output()
        return OUTPUT_GONE
    except OSError as error:
        # File errors are raised as RekindleError, so this one comes from stdout. The command itself
        # succeeded.
        _print_error(f"the output could not be written: {error.strerror}")
        _drop_output()
        return RekindleError.exit_code
    except RekindleError as error:
        _print_error(str(error), error.hint)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the one place that turns a bug into a report
        return _report_crash(error)
    return code if isinstance(code, int) else 0


def _print_error(message: str, hint: str = "") -> None:
    echo(_ERROR, f" {_redact_error(message)}", err=True)
    if hint:
        echo(f"  → {_redact_error(hint)}", err=True)


def _make_usage_hint(error: click.UsageError, context: click.Context) -> str:
    """Return the next step after a usage error from click."""
    help_command = f"`{context.command_path} --help`"
    if isinstance(error, click.NoSuchOption):
        return f"{help_command} lists the options"
    if isinstance(context.command, click.Group) and not isinstance(error, click.BadParameter):
        return f"{help_command} lists all commands"
    usage = " ".join(context.get_usage().removeprefix("Usage:").split())
    return f"usage: `{usage}`; {help_command} explains it"


def _tolerate_print_errors() -> None:
    """Let a command succeed even if stdout is closed or cannot encode a `✓`."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for the rest of the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _redact_error(text: str) -> str:
    """Redact an error message, which may quote input and end up in a bug report."""
    try:
        return _redact_text(text)
    except Exception:  # noqa: BLE001 - such as an import that fails without free file descriptors
        return _MAY_BE_SECRET.sub("…", text)


def _redact_text(text: str) -> str:
    from rekindle.policy.redact.redaction import Redaction  # noqa: PLC0415 - only errors need it

    return Redaction().text(text)


def _report_crash(error: Exception) -> int:
    import tempfile  # noqa: PLC0415 - only a crash needs it; keeps the start fast
    from traceback import format_exception, format_tb  # noqa: PLC0415 - as above

    try:
        summary = _redact_text(f"{type(error).__name__}: {error}")
        trace = _redact_text("".join(format_exception(error)))
    except Exception:  # noqa: BLE001 - the bug may be in redaction: print only our own code
        summary = type(error).__name__
        trace = "".join(format_tb(error.__traceback__)) + summary
    report = f"rekindle {__version__}, Python {sys.version}\n{trace}"
    echo(_ERROR, f" a bug in Rekindle: {summary}", err=True)
    try:
        with tempfile.NamedTemporaryFile(
            "w",
            prefix="rekindle-crash-",
            suffix=".txt",
            delete=False,
            encoding="utf-8",
            errors="backslashreplace",
        ) as file:
            file.write(report)
        echo(f"  → please report it with {file.name}; recorded data is safe", err=True)
    except OSError:
        echo(report, err=True)
    return CRASHED
