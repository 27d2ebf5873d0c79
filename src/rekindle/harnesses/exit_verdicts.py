"""Exit verdicts, and the exits that all harnesses classify in the same way.

Each harness contains the messages that are special to its own CLI. `message_verdicts` classifies
all other messages.
"""

import re
import signal
from itertools import takewhile

from rekindle.documents.launches.launch_types import (
    ExitKind,
    LaunchExit,
    ProcessResult,
)
from rekindle.formats.identifiers import to_one_line
from rekindle.thresholds.texts import EXIT_CHARACTERS, LIMIT_CHARACTERS

ExitVerdict = tuple[ExitKind, str]
"""Kind of exit, with its description."""
VerdictSentences = tuple[tuple[ExitVerdict, str], ...]
"""Verdicts, each with a pattern for its messages. The first match counts."""

FULL: ExitVerdict = ("context-full", "its window is full")
TURNS: ExitVerdict = ("budget", "it has used all its turns")
MONEY: ExitVerdict = ("budget", "it has spent its budget in dollars")
TOKENS: ExitVerdict = ("budget", "it has used all its tokens")
LOGIN: ExitVerdict = ("auth", "a person must log in")
ACCESS: ExitVerdict = ("auth", "a person must grant access")
UNPAID: ExitVerdict = ("billing", "payment is required")
SETUP: ExitVerdict = ("misconfigured", "the agent cannot be used")
LIMIT: ExitVerdict = ("limit", "a limit was reached")
OUTAGE: ExitVerdict = ("overload", "the API is unavailable")
NETWORK: ExitVerdict = ("network", "the API could not be reached")
MISSING: ExitVerdict = ("resume-failed", "the session no longer exists")
IN_USE: ExitVerdict = ("resume-failed", "another process is using the session")
UNREADABLE: ExitVerdict = ("resume-failed", "the session can no longer be read")
POISONED: ExitVerdict = ("resume-failed", "the API refuses the content of the session")
WITHHELD: ExitVerdict = ("crash", "the answer was withheld")

_BY_A_PERSON = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
"""Signals from Ctrl-C, `kill` and a closing terminal, which do not count as a crash."""
_NEXT_ERROR = re.compile(r"error\b|at (?!\d)", re.IGNORECASE)
_STATUSES = {401: LOGIN, 402: UNPAID, 403: ACCESS, 413: FULL, 429: LIMIT}
_BROKEN = 500


def classify_early(ended: ProcessResult) -> LaunchExit | None:
    """Return an exit that does not depend on the output, such as a stop or a wrong session."""
    if ended.stopped:
        return LaunchExit("interrupted", "stopped by the operator")
    if ended.resumes and ended.opened and ended.opened != ended.session:
        return LaunchExit("resume-failed", "the CLI opened another session instead of resuming")
    if ended.interactive and ended.code == 0:
        return LaunchExit("clean", "closed by its user")
    return None


def classify_signal(code: int) -> LaunchExit | None:
    """Return the exit of a process that a signal ended, even if a shell reports it as a code."""
    offset, last = 128, 64
    number = -code if code < 0 else code - offset if offset < code <= offset + last else 0
    if not number:
        return None
    kind: ExitKind = "interrupted" if number in _BY_A_PERSON else "crash"
    try:
        return LaunchExit(kind, f"ended by {signal.Signals(number).name}")
    except ValueError:
        return LaunchExit(kind, f"ended by signal {number}")


def make_failed_exit(
    verdict: ExitVerdict, message: str, resets_at: int | None = None, rest: str = ""
) -> LaunchExit:
    """Return an exit with the program's message, which may contain a reset time.

    `rest` is the output after the message. The reset time may also be there.
    """
    kind, name = verdict
    words = to_one_line(f"{name}: {message}" if message else name, EXIT_CHARACTERS)
    return (
        LaunchExit(kind, words, to_one_line(f"{message} {rest}", LIMIT_CHARACTERS), resets_at)
        if kind == "limit"
        else LaunchExit(kind, words)
    )


def join_rest(lines: list[str], place: int) -> str:
    """Return the lines after a message, up to the next error or stack trace."""
    return " ".join(takewhile(lambda line: not _NEXT_ERROR.match(line), lines[place + 1 :]))


def match_sentence(text: str, sentences: VerdictSentences) -> ExitVerdict | None:
    # Compile the patterns on first use, because most commands never need them.
    matches = (verdict for verdict, sign in sentences if re.search(sign, text, re.IGNORECASE))
    return next(matches, None)


def match_status(status: int | None) -> ExitVerdict | None:
    if status and status >= _BROKEN:
        return OUTAGE
    return _STATUSES.get(status or 0)


def normalize_sentence(text: str) -> str:
    """Return a text on one line with plain apostrophes, as the patterns expect."""
    return to_one_line(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"), len(text) + 1)


SOCKETS = r"\b(econn\w+|enotfound|eai_again|etimedout|enetunreach|ehostunreach)\b"
