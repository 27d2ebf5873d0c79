"""Exit verdicts, and message patterns that all harnesses share.

Each harness contains the messages of its own CLI. This module contains the verdicts, the HTTP
statuses, and messages that many programs print.
"""

import re
import signal

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
    verdict: ExitVerdict, message: str, resets_at: int | None = None
) -> LaunchExit:
    """Return an exit with the program's message, which may contain a reset time."""
    kind, name = verdict
    words = to_one_line(f"{name}: {message}" if message else name, EXIT_CHARACTERS)
    return (
        LaunchExit(kind, words, to_one_line(message, LIMIT_CHARACTERS), resets_at)
        if kind == "limit"
        else LaunchExit(kind, words)
    )


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

_BEGINS = r"(?:^\W*+|[:;.] ?|\b[45]\d\d )[\"\[({]*"
"""Start of a sentence: at the start of the text, or after punctuation, a status or a bracket.

The match does not backtrack before the first word. Otherwise, with thousands of brackets, each
could belong to either repetition, and matching would take quadratic time.
"""
_API = r"(the |this |selected )?(model|server|service|api|engine)"
_WHAT_IS_SPENT = r"( \w+){0,4} (limits?|quota|allowance)\b"

_COMMON: VerdictSentences = tuple(
    (verdict, f"{_BEGINS}(?:{sentence})")
    for verdict, sentence in (
        (UNPAID, r"you have no quota|payment required|your credit balance"),
        (LIMIT, r"(the )?usage limit|free usage exceeded|free allocated quota exceeded"),
        (LIMIT, rf"(sorry, )?you('ve| have)? (hit|exceeded|reached) (a|your){_WHAT_IS_SPENT}"),
        (LIMIT, r"(sorry, )?(you have been|you are|your request was) rate[ -]limited"),
        (LIMIT, r"quota exceeded|possible quota limitation|insufficient_quota"),
        (LIMIT, r"rate limit (exceeded|reached)|rate[ -]limited\b|(\w+_)?rate_limited\b"),
        (LIMIT, r"too many requests"),
        (OUTAGE, rf"{_API} is (currently |temporarily )?(overloaded|at capacity|unavailable)"),
        (OUTAGE, r"overloaded(_error)?(?=$|[.,;:!\"])|internal server error"),
        (OUTAGE, r"(we're |we are )?(currently )?experiencing high demand|service unavailable"),
        (OUTAGE, r"failed to get response"),
        (LOGIN, r"(you are |you're )?not logged in|invalid api key"),
        (LOGIN, r"unauthorized(?=$|[.,;:!\"])"),
        (NETWORK, r"connection (error|failed|refused|reset)|request timed out|fetch failed"),
    )
)
_SOCKETS: VerdictSentences = ((NETWORK, SOCKETS),)
_OF_A_TEST = re.compile(r"\bassert|\bexpected\b|[!=]=", re.IGNORECASE)
"""Pattern for failed tests, whose messages are about the tested code."""
_LOOPBACK = re.compile(
    r"(?<![\w.:])(127(\.\d{1,3}){3}|localhost|\[?::1\]?)(?![\w.])", re.IGNORECASE
)
"""Address on this host. If a service there is down, it is not a network problem."""
_STATUS = re.compile(r"\W*(?:error:? )?(?:http |status )?([45]\d\d)(?::| \{)", re.IGNORECASE)


def find_verdict(text: str, status: int | None = None) -> ExitVerdict | None:
    """Return the verdict for an unknown program's last message, or None if it explains nothing.

    The program's own work may be about limits and logins, so a pattern must match at the start of a
    sentence.
    """
    words = normalize_sentence(text)
    if _OF_A_TEST.search(words):
        return match_status(status)
    status_match = _STATUS.match(words)
    verdict = match_sentence(words, _COMMON) or match_sentence(words, _SOCKETS)
    if verdict == NETWORK and _LOOPBACK.search(words):
        verdict = None
    return verdict or match_status(status or (int(status_match[1]) if status_match else None))
