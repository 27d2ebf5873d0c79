"""Codex: how a launch of it ended.

Its exit code tells only that something failed, and a run that SIGINT ended fails without a word;
every other failure says why, on the stream or on standard error. It puts a failure into another's
words ("Error running remote compact task: …", "stream disconnected before completion: …"), so what
is said inside comes before what is said around it; the API's status it tells in its words only.
"""

import re

from rekindle.documents.launches.cli_output import (
    LaunchExit,
    ProcessResult,
)
from rekindle.harnesses import exit_verdicts
from rekindle.harnesses.exit_verdicts import ExitVerdict

_SENTENCES: exit_verdicts.VerdictSentences = (
    (exit_verdicts.MISSING, r"no rollout found"),
    (exit_verdicts.IN_USE, r"already has an active writer"),
    (exit_verdicts.UNREADABLE, r"thread/resume failed"),
    (exit_verdicts.FULL, r"context_length_exceeded|exceeds the context window|ran out of room"),
    (exit_verdicts.WITHHELD, r"reason: content_filter"),
    (exit_verdicts.TOKENS, r"token budget exhausted"),
    (exit_verdicts.UNPAID, r"out of credits|spend cap|plan and billing details"),
    (exit_verdicts.UNPAID, r"insufficient[ _]quota"),
    (exit_verdicts.UNPAID, r"to use codex with your chatgpt plan"),
    (exit_verdicts.LIMIT, r"hit your usage limit|usage limit has been reached|usage_limit_reached"),
    (exit_verdicts.LIMIT, r"atingiu o limite|l[ií]mite de uso (se|será) (restablece|redefinid)"),
    (exit_verdicts.LIMIT, r"rate limit (reached|exceeded)|\b429 too many requests"),
    (exit_verdicts.LOGIN, r"token could not be refreshed|failed to refresh token|not logged in"),
    (exit_verdicts.LOGIN, r"sign in again|missing environment variable"),
    (exit_verdicts.OUTAGE, r"high demand|at capacity|server_is_overloaded"),
)
_AROUND: exit_verdicts.VerdictSentences = (
    (exit_verdicts.NETWORK, r"stream disconnected|error sending request|connection failed"),
    (exit_verdicts.NETWORK, r"timed out|timeout waiting for child process|reconnecting\.\.\."),
    (exit_verdicts.NETWORK, exit_verdicts.SOCKETS),
)


def find_status(words: str) -> int | None:
    """The status of HTTP that its words tell: "unexpected status 402 Payment Required"."""
    found = re.search(r"\bstatus:? (\d{3})\b", words)
    return int(found[1]) if found else None


def find_verdict(text: str, status: int | None = None) -> ExitVerdict | None:
    """What it means; None: it explains nothing, as a warning or a panel of usage does not."""
    words = exit_verdicts.normalize_sentence(text)
    return (
        exit_verdicts.match_sentence(words, _SENTENCES)
        or exit_verdicts.match_status(status or find_status(words))
        or exit_verdicts.match_sentence(words, _AROUND)
    )


_GREETING = "Reading prompt from stdin"
"""What it writes to its standard error before anything else; no failure."""

_GIVES_UP = re.compile(r"Error: |thread '.{0,80}' (\(\d+\) )?panicked")
"""How it begins its last words."""


def classify(ended: ProcessResult) -> LaunchExit:
    """How it ended, for who decides what is to be done about it."""
    if found := exit_verdicts.classify_early(ended):
        return found
    if ended.finished and ended.finished.ok:
        return LaunchExit("clean", "finished")
    if found := exit_verdicts.classify_signal(ended.code):
        return found
    said = _find_own_words(ended)
    if ended.code == 1 and ended.opened and not said:
        return LaunchExit("interrupted", "interrupted, by SIGINT")
    name = f"failed with exit code {ended.code}" if ended.code else "left no result"
    return exit_verdicts.make_failed_exit(find_verdict(said) or ("crash", name), said)


def _find_own_words(ended: ProcessResult) -> str:
    """What the program says went wrong: on the stream, or else on its standard error.

    There it may stand in the middle of a trace, of which the last telling line counts: what it
    complained of before did not end it. Where it gives itself up, nothing before that counts.
    """
    if ended.finished and (told := " ".join(ended.finished.errors).strip()):
        return exit_verdicts.normalize_sentence(told)
    lines = [
        exit_verdicts.normalize_sentence(line) for line in ended.errors.splitlines() if line.strip()
    ]
    lines = [line for line in lines if not line.startswith(_GREETING)]
    gave_up = [place for place, line in enumerate(lines) if _GIVES_UP.match(line)]
    lines = lines[gave_up[-1] :] if gave_up else lines
    telling = (line for line in reversed(lines) if find_verdict(line))
    return next(telling, (lines[0] if gave_up else lines[-1]) if lines else "")
