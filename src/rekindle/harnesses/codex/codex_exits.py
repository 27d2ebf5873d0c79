"""Classify how a Codex launch ended.

The exit code only shows that something failed. A run that SIGINT ended has no error message. Every
other failure has one, in the stream or on standard error. Codex wraps one failure in another
("Error running remote compact task: …", "stream disconnected before completion: …"), so the inner
message is checked before the outer one. The API's status is only in the text of the message.
"""

import re

from rekindle.documents.launches.launch_types import (
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
    """Return the HTTP status in a message such as "unexpected status 402 Payment Required"."""
    match = re.search(r"\bstatus:? (\d{3})\b", words)
    return int(match[1]) if match else None


def find_verdict(text: str, status: int | None = None) -> ExitVerdict | None:
    """Return the verdict for a message, or None for a message such as a warning."""
    words = exit_verdicts.normalize_sentence(text)
    return (
        exit_verdicts.match_sentence(words, _SENTENCES)
        or exit_verdicts.match_status(status or find_status(words))
        or exit_verdicts.match_sentence(words, _AROUND)
    )


_GREETING = "Reading prompt from stdin"
"""The line that Codex always prints to standard error first. It is not an error."""

_GIVES_UP = re.compile(r"Error: |thread '.{0,80}' (\(\d+\) )?panicked")
"""Start of the last message that Codex prints before it exits with an error."""


def classify(ended: ProcessResult) -> LaunchExit:
    """Classify how the launch ended, for the restart policy."""
    if launch_exit := exit_verdicts.classify_early(ended):
        return launch_exit
    if ended.finished and ended.finished.ok:
        return LaunchExit("clean", "finished")
    if launch_exit := exit_verdicts.classify_signal(ended.code):
        return launch_exit
    message = _find_own_words(ended)
    if ended.code == 1 and ended.opened and not message:
        return LaunchExit("interrupted", "interrupted, by SIGINT")
    name = f"failed with exit code {ended.code}" if ended.code else "exited without a result"
    return exit_verdicts.make_failed_exit(find_verdict(message) or ("crash", name), message)


def _find_own_words(ended: ProcessResult) -> str:
    """Return the program's error message, from the stream or from standard error.

    On standard error, the message may be inside a stack trace. The last recognized line counts,
    because the program continued after earlier errors. If Codex printed a final error, earlier
    lines are ignored.
    """
    if ended.finished and (message := " ".join(ended.finished.errors).strip()):
        return exit_verdicts.normalize_sentence(message)
    lines = [
        exit_verdicts.normalize_sentence(line) for line in ended.errors.splitlines() if line.strip()
    ]
    lines = [line for line in lines if not line.startswith(_GREETING)]
    gave_up = [place for place, line in enumerate(lines) if _GIVES_UP.match(line)]
    lines = lines[gave_up[-1] :] if gave_up else lines
    telling = (line for line in reversed(lines) if find_verdict(line))
    return next(telling, (lines[0] if gave_up else lines[-1]) if lines else "")
