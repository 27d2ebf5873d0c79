"""What an end can be called: the verdicts that every harness chooses from.

The sentences of one CLI stand in its harness. Here is what they share: the verdicts themselves, the
statuses of HTTP, and sentences that programs print whoever made them.
"""

import re
import signal

from rekindle.documents.identity import one_line
from rekindle.documents.launch import Ended, Exit, ExitKind
from rekindle.thresholds.texts import EXIT_CHARACTERS, LIMIT_CHARACTERS

Verdict = tuple[ExitKind, str]
"""The kind of an end, and what to call it."""
Sentences = tuple[tuple[Verdict, str], ...]
"""What a verdict is known by, as a pattern; the first that is found decides."""

FULL: Verdict = ("context-full", "its window is full")
TURNS: Verdict = ("budget", "all turns that it had were used")
MONEY: Verdict = ("budget", "all money that it had was used")
TOKENS: Verdict = ("budget", "all tokens that it had were used")
LOGIN: Verdict = ("auth", "a person must log in")
ACCESS: Verdict = ("auth", "a person must give access")
UNPAID: Verdict = ("billing", "a person must pay")
LIMIT: Verdict = ("limit", "a limit was reached")
OUTAGE: Verdict = ("overload", "the API does not serve")
NETWORK: Verdict = ("network", "the API could not be reached")
MISSING: Verdict = ("resume-failed", "there is no such session any more")
IN_USE: Verdict = ("resume-failed", "another process works in the session")
UNREADABLE: Verdict = ("resume-failed", "the session cannot be read any more")
POISONED: Verdict = ("resume-failed", "the API refuses what the session holds")
WITHHELD: Verdict = ("crash", "the answer was withheld")

_BY_A_PERSON = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
"""What Ctrl-C, `kill` and a terminal that closes send: nobody crashed."""
_STATUSES = {401: LOGIN, 402: UNPAID, 403: ACCESS, 413: FULL, 429: LIMIT}
_BROKEN = 500


def beforehand(ended: Ended) -> Exit | None:
    """What counts whatever the program says: the operator's word, the wrong session, the person."""
    if ended.stopped:
        return Exit("interrupted", "stopped, as the operator said")
    if ended.resumes and ended.opened and ended.opened != ended.session:
        return Exit("resume-failed", "another session was opened than the one to go on with")
    if ended.interactive and ended.code == 0:
        return Exit("clean", "left by the person in its terminal")
    return None


def by_signal(code: int) -> Exit | None:
    """A process that a signal ended, or that ended itself for one, as a shell tells it."""
    offset, last = 128, 64
    number = -code if code < 0 else code - offset if offset < code <= offset + last else 0
    if not number:
        return None
    kind: ExitKind = "interrupted" if number in _BY_A_PERSON else "crash"
    try:
        return Exit(kind, f"ended by {signal.Signals(number).name}")
    except ValueError:
        return Exit(kind, f"ended by signal {number}")


def failed(found: Verdict, said: str, resets_at: int | None = None) -> Exit:
    """An end with the program's own words, which also say when a limit ends."""
    kind, name = found
    words = one_line(f"{name}: {said}" if said else name, EXIT_CHARACTERS)
    return (
        Exit(kind, words, one_line(said, LIMIT_CHARACTERS), resets_at)
        if kind == "limit"
        else Exit(kind, words)
    )


def by_sentence(text: str, known: Sentences) -> Verdict | None:
    # Compiled when first looked for: most commands never look.
    found = (verdict for verdict, sign in known if re.search(sign, text, re.IGNORECASE))
    return next(found, None)


def by_status(status: int | None) -> Verdict | None:
    if status and status >= _BROKEN:
        return OUTAGE
    return _STATUSES.get(status or 0)


def plain(text: str) -> str:
    """Text as its sentences are looked for: on one line, with the plain apostrophe."""
    return one_line(text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'"), len(text) + 1)


SOCKETS = r"\b(econn\w+|enotfound|eai_again|etimedout|enetunreach|ehostunreach)\b"

_BEGINS = r"(?:^\W*|[:;.] ?|\b[45]\d\d )[\"\[({]*"
"""Where a sentence begins: at the start, behind a mark or a status, in a text of JSON."""
_API = r"(the |this |selected )?(model|server|service|api|engine)"
_WHAT_IS_SPENT = r"( \w+){0,4} (limits?|quota|allowance)\b"

_COMMON: Sentences = tuple(
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
_SOCKETS: Sentences = ((NETWORK, SOCKETS),)
_OF_A_TEST = re.compile(r"\bassert|\bexpected\b|[!=]=", re.IGNORECASE)
"""What a program says whose tests have failed: the words in it are those that it works on."""
_LOOPBACK = re.compile(
    r"(?<![\w.:])(127(\.\d{1,3}){3}|localhost|\[?::1\]?)(?![\w.])", re.IGNORECASE
)
"""An address on this host: a service that is down there is the program's own concern."""
_STATUS = re.compile(r"\W*(?:error:? )?(?:http |status )?([45]\d\d)(?::| \{)", re.IGNORECASE)


def verdict(text: str, status: int | None = None) -> Verdict | None:
    """What any program's last words mean; None: they explain nothing.

    Nothing is known of it, and what it works on may be about limits and logins itself: so a
    sentence counts where it begins as one, not wherever its words are found.
    """
    words = plain(text)
    if _OF_A_TEST.search(words):
        return by_status(status)
    told = _STATUS.match(words)
    found = by_sentence(words, _COMMON) or by_sentence(words, _SOCKETS)
    if found == NETWORK and _LOOPBACK.search(words):
        found = None
    return found or by_status(status or (int(told[1]) if told else None))
