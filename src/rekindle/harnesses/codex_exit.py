"""Codex: how a launch of it ended.

Its exit code tells only that something failed, and a run that SIGINT ended fails without a word;
every other failure says why, on the stream or on standard error. It puts a failure into another's
words ("Error running remote compact task: …", "stream disconnected before completion: …"), so what
is said inside comes before what is said around it; the API's status it tells in its words only.
"""

import re

from rekindle.documents.launch import Ended, Exit
from rekindle.harnesses import verdicts
from rekindle.harnesses.verdicts import Verdict

_SENTENCES: verdicts.Sentences = (
    (verdicts.MISSING, r"no rollout found"),
    (verdicts.IN_USE, r"already has an active writer"),
    (verdicts.UNREADABLE, r"thread/resume failed"),
    (verdicts.FULL, r"context_length_exceeded|exceeds the context window|ran out of room"),
    (verdicts.WITHHELD, r"reason: content_filter"),
    (verdicts.TOKENS, r"token budget exhausted"),
    (verdicts.UNPAID, r"out of credits|spend cap|plan and billing details"),
    (verdicts.UNPAID, r"insufficient[ _]quota"),
    (verdicts.UNPAID, r"to use codex with your chatgpt plan"),
    (verdicts.LIMIT, r"hit your usage limit|usage limit has been reached|usage_limit_reached"),
    (verdicts.LIMIT, r"atingiu o limite|l[ií]mite de uso (se|será) (restablece|redefinid)"),
    (verdicts.LIMIT, r"rate limit (reached|exceeded)|\b429 too many requests"),
    (verdicts.LOGIN, r"token could not be refreshed|failed to refresh token|not logged in"),
    (verdicts.LOGIN, r"sign in again|missing environment variable"),
    (verdicts.OUTAGE, r"high demand|at capacity|server_is_overloaded"),
)
_AROUND: verdicts.Sentences = (
    (verdicts.NETWORK, r"stream disconnected|error sending request|connection failed"),
    (verdicts.NETWORK, r"timed out|timeout waiting for child process|reconnecting\.\.\."),
    (verdicts.NETWORK, verdicts.SOCKETS),
)


def told_status(words: str) -> int | None:
    """The status of HTTP that its words tell: "unexpected status 402 Payment Required"."""
    found = re.search(r"\bstatus:? (\d{3})\b", words)
    return int(found[1]) if found else None


def verdict(text: str, status: int | None = None) -> Verdict | None:
    """What it means; None: it explains nothing, as a warning or a panel of usage does not."""
    words = verdicts.plain(text)
    return (
        verdicts.by_sentence(words, _SENTENCES)
        or verdicts.by_status(status or told_status(words))
        or verdicts.by_sentence(words, _AROUND)
    )


_GREETING = "Reading prompt from stdin"
"""What it writes to its standard error before anything else; no failure."""

_GIVES_UP = re.compile(r"Error: |thread '.{0,80}' (\(\d+\) )?panicked")
"""How it begins its last words."""


def classify(ended: Ended) -> Exit:
    """How it ended, for who decides what is to be done about it."""
    if found := verdicts.beforehand(ended):
        return found
    if ended.finished and ended.finished.ok:
        return Exit("clean", "finished")
    if found := verdicts.by_signal(ended.code):
        return found
    said = _own_words(ended)
    if ended.code == 1 and ended.opened and not said:
        return Exit("interrupted", "interrupted, by SIGINT")
    name = f"failed with exit code {ended.code}" if ended.code else "left no result"
    return verdicts.failed(verdict(said) or ("crash", name), said)


def _own_words(ended: Ended) -> str:
    """What the program says went wrong: on the stream, or else on its standard error.

    There it may stand in the middle of a trace, of which the last telling line counts: what it
    complained of before did not end it. Where it gives itself up, nothing before that counts.
    """
    if ended.finished and (told := " ".join(ended.finished.errors).strip()):
        return verdicts.plain(told)
    lines = [verdicts.plain(line) for line in ended.errors.splitlines() if line.strip()]
    lines = [line for line in lines if not line.startswith(_GREETING)]
    gave_up = [place for place, line in enumerate(lines) if _GIVES_UP.match(line)]
    lines = lines[gave_up[-1] :] if gave_up else lines
    telling = (line for line in reversed(lines) if verdict(line))
    return next(telling, (lines[0] if gave_up else lines[-1]) if lines else "")
