"""The `rekindle` command. Subcommands are imported only when they are called."""

import gc
import io
import os
import re
import sys
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

import click

from rekindle import __version__
from rekindle.cli.output import (
    echo,
    print_styled,
)
from rekindle.errors import RekindleError

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("rekindle.cli.setup.init_command:init", "Set an agent up in this folder."),
    "run": (
        "rekindle.cli.running.run_command:run",
        "Run an agent, and keep it alive until it is done.",
    ),
    "status": (
        "rekindle.cli.reports.status_command:status",
        "How the agents are, and what comes next.",
    ),
    "stop": ("rekindle.cli.running.stop_command:stop", "Stop an agent, and have it stay stopped."),
    "doctor": (
        "rekindle.cli.setup.doctor_command:doctor",
        "What is wrong, and the command that fixes it.",
    ),
    "restart": (
        "rekindle.cli.running.stop_command:restart",
        "Start an agent again now, whatever held it back.",
    ),
    "questions": (
        "rekindle.cli.running.question_commands:questions",
        "What the agents ask a person.",
    ),
    "answer": ("rekindle.cli.running.question_commands:answer", "Answer a question of an agent."),
    "approve": ("rekindle.cli.running.question_commands:approve", "Answer a question with yes."),
    "deny": ("rekindle.cli.running.question_commands:deny", "Answer a question with no."),
    "handoff": (
        "rekindle.cli.running.handoff_command:handoff",
        "Have a fresh session go on, with a checkpoint.",
    ),
    "up": ("rekindle.cli.running.up_command:up", "Run agents in the background."),
    "down": ("rekindle.cli.running.up_command:down", "Stop agents, and have them stay stopped."),
    "attach": (
        "rekindle.cli.running.tmux_attach:attach",
        "Look at the tmux window of an agent, and type.",
    ),
    "torture": (
        "rekindle.cli.setup.torture_command:torture",
        "Whether this file system keeps what Rekindle promises.",
    ),
    "demo": (
        "rekindle.cli.setup.demo_command:demo",
        "Watch an agent being killed and coming back.",
    ),
    "hooks": ("rekindle.cli.setup.hooks_command:hooks", "Have an agent CLI report to Rekindle."),
    "watch": (
        "rekindle.cli.running.watch_command:watch",
        "Start the supervisors that are gone; for cron.",
    ),
    "daemon": ("rekindle.cli.running.watch_command:daemon", "The same, again and again."),
    "service": (
        "rekindle.cli.running.service_command:service",
        "Have the daemon started with the host.",
    ),
    "relay": (
        "rekindle.cli.documents.relay_command:relay",
        "The document between cycles: show, check, set.",
    ),
    "decisions": (
        "rekindle.cli.documents.decisions_command:decisions",
        "What was decided, and what became of it.",
    ),
    "loops": ("rekindle.cli.documents.loops_command:loops", "What is open, and what was resolved."),
    "resolve": ("rekindle.cli.documents.loops_command:resolve", "Take an open loop off the list."),
    "adopt": (
        "rekindle.cli.setup.adopt_command:adopt",
        "Take over what another loop has left behind.",
    ),
    "transcript": (
        "rekindle.cli.reports.transcript_command:transcript",
        "What was said and done in an agent's sessions.",
    ),
    "summarize": (
        "rekindle.cli.documents.summarize_command:summarize",
        "A transcript as a checkpoint, a relay or a brief.",
    ),
    "brief": (
        "rekindle.cli.reports.brief_command:brief",
        "What was done, what is open, what comes next.",
    ),
    "logs": (
        "rekindle.cli.reports.logs_command:logs",
        "What the agents said and did, with the time.",
    ),
    "events": ("rekindle.cli.reports.events_command:events", "What happened, newest last."),
    "redact": ("rekindle.cli.documents.redact_command:redact", "A text without the secrets in it."),
    "fleet": ("rekindle.cli.fleet.fleet_command:fleet", "Agents over many hosts."),
    "forget": ("rekindle.cli.setup.forget_command:forget", "Remove every trace of one project."),
    "uninstall": (
        "rekindle.cli.setup.forget_command:uninstall",
        "Remove every trace of Rekindle on this host.",
    ),
    "config": (
        "rekindle.cli.setup.config_command:config",
        "Every setting: its value, origin and meaning.",
    ),
}
"""Module and summary of each command, so that `--help` does not import them."""

INTERRUPTED = 130
CRASHED = 70
OUTPUT_GONE = 141
_MAY_BE_SECRET = re.compile(r"\S*\d\S*|\S{20,}")
"""Words to hide if redaction itself fails; it hides too much rather than too little."""


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        # Imported modules are never garbage: leave them out of every later collection.
        gc.freeze()
        gc.enable()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 96},
    epilog="Exit codes: 0 done, 2 usage, 3 manifest, 4 document, 5 disk, 6 owner, 7 not found,"
    " 8 a check found something, 9 the agent stopped, 10 the engine of a fleet,"
    " 14 an agent called a command that is the operator's."
    " Every command takes --help.",
)
@click.version_option(__version__, prog_name="rekindle")
def app() -> None:
    """Keep AI agents working when their sessions end."""


def main() -> NoReturn:
    code = run(sys.argv[1:])
    if "temporalio" in sys.modules:
        # Native threads of the engine's client may still call into Python. While the interpreter
        # shuts down, that crashed one command in four.
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def run(arguments: list[str]) -> int:  # noqa: PLR0911 - one for each exit code
    """Run one command and return its exit code; print every error as a message."""
    try:
        _tolerate_print_errors()
        code = app.main(arguments, prog_name="rekindle", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        words = io.StringIO()
        error.show(words)
        echo(_redact_error(words.getvalue().removesuffix("\n")), err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        echo("Stopped.", err=True)
        return INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # The reader (head, less) has exited; click raises SystemExit then. Drop the buffered
        # output, or Python would report the broken pipe once more at exit.
        _drop_output()
        return OUTPUT_GONE
    except OSError as error:
        # Errors about files are RekindleErrors, so stdout failed. The command itself succeeded.
        echo(f"Error: the output could not be written: {error.strerror}", err=True)
        _drop_output()
        return RekindleError.exit_code
    except RekindleError as error:
        print_styled(f"Error: {_redact_error(str(error))}", fg="red", err=True)
        if error.hint:
            echo(f"  → {_redact_error(error.hint)}", err=True)
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the one place that turns a bug into a report
        return _report_crash(error)
    return code if isinstance(code, int) else 0


def _tolerate_print_errors() -> None:
    """Keep a command from failing because stdout is closed or cannot encode a `✓`."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - for the rest of the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _drop_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _redact_error(text: str) -> str:
    """Redact an error message, which may quote input and is often pasted into bug reports."""
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
        said = _redact_text(f"{type(error).__name__}: {error}")
        trace = _redact_text("".join(format_exception(error)))
    except Exception:  # noqa: BLE001 - the bug may be in redaction: print only our own code
        said = type(error).__name__
        trace = "".join(format_tb(error.__traceback__)) + said
    report = f"rekindle {__version__}, Python {sys.version}\n{trace}"
    print_styled(f"Error: a bug in Rekindle: {said}", fg="red", err=True)
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
        echo(f"  → please report it with {file.name}; what was kept is safe", err=True)
    except OSError:
        echo(report, err=True)
    return CRASHED
