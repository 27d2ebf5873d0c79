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
from rekindle.harnesses import exit_verdicts, message_verdicts
from rekindle.harnesses.exit_verdicts import ExitVerdict

_SENTENCES: exit_verdicts.VerdictSentences = (
    (exit_verdicts.MISSING, r"no rollout found"),
    (exit_verdicts.IN_USE, r"already has an active writer"),
    (exit_verdicts.UNREADABLE, r"thread/resume failed"),
    (exit_verdicts.WITHHELD, r"reason: content_filter"),
    (exit_verdicts.TOKENS, r"token budget exhausted"),
    (exit_verdicts.UNPAID, r"out of credits|spend cap"),
    (
        exit_verdicts.UNPAID,  # unless another provider means a limit
        (
            r"^(?!.{0,2000}(?:(?:rate|token)-limit|quota limit|resets? (?:at|in)))"
            r".{0,2000}(?:billing details|insufficient[ _]quota)"
        ),
    ),
    (exit_verdicts.LOGIN, r"missing environment variable"),
)
_AROUND: exit_verdicts.VerdictSentences = (
    (exit_verdicts.NETWORK, r"stream disconnected|error sending request|timed out"),
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
        or message_verdicts.find_verdict(words, status or find_status(words), is_error=True)
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
    message, rest = _find_own_words(ended)
    if ended.code == 1 and ended.opened and not message:
        return LaunchExit("interrupted", "interrupted, by SIGINT")
    name = f"failed with exit code {ended.code}" if ended.code else "exited without a result"
    return exit_verdicts.make_failed_exit(
        find_verdict(message) or ("crash", name), message, rest=rest
    )


def _find_own_words(ended: ProcessResult) -> tuple[str, str]:
    """Return the program's error message, from the stream or from standard error, and the rest.

    On standard error, the message may be inside a stack trace. The last recognized line counts,
    because the program continued after earlier errors. If Codex printed a final error, earlier
    lines are ignored.
    """
    if ended.finished and (message := " ".join(ended.finished.errors).strip()):
        return exit_verdicts.normalize_sentence(message), ""
    lines = [
        exit_verdicts.normalize_sentence(line) for line in ended.errors.splitlines() if line.strip()
    ]
    lines = [line for line in lines if not line.startswith(_GREETING)]
    gave_up = [place for place, line in enumerate(lines) if _GIVES_UP.match(line)]
    lines = lines[gave_up[-1] :] if gave_up else lines
    for place in reversed(range(len(lines))):
        if find_verdict(lines[place]):
            return lines[place], exit_verdicts.join_rest(lines, place)
    return (lines[0] if gave_up else lines[-1]) if lines else "", ""
