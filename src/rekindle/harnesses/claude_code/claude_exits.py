"""Classify how a Claude Code launch ended.

The exit code is not reliable. It is 0 on SIGINT and 1 on most failures, and a request that the API
refused is reported as a "success" with `is_error`. Rekindle therefore uses the CLI's reason first,
then the API's status, then the error message. It uses messages only if a run has failed, because an
agent may write about limits in its work.
"""

import re

from rekindle.documents.launches.launch_types import (
    LaunchExit,
    ProcessResult,
)
from rekindle.harnesses import exit_verdicts, message_verdicts
from rekindle.harnesses.exit_verdicts import (
    FULL,
    LIMIT,
    LOGIN,
    ExitVerdict,
)

_REASONS = {
    "prompt_too_long": FULL,
    "blocking_limit": FULL,
    "max_turns": exit_verdicts.TURNS,
    "error_max_turns": exit_verdicts.TURNS,
    "budget_exhausted": exit_verdicts.MONEY,
    "error_max_budget_usd": exit_verdicts.MONEY,
}
_ABORTED = "aborted"
"""Prefix of the CLI's reason if a tool call or a model response was interrupted."""

_BY_A_HOOK = LaunchExit("interrupted", "stopped by a hook between two turns")

_REFUSED = 400

_OUT_OF_MONEY = re.compile(
    r"credit balance|out of (extra )?usage|usage credits?\b|shared budget|spend limit|add funds"
    r"|usage allocation|limit is set to \$0|usage is paused",
    re.IGNORECASE,
)
_SENTENCES: exit_verdicts.VerdictSentences = (
    (exit_verdicts.MISSING, r"no conversation found"),
    (LOGIN, r"/login\b(?! to switch)"),
)


def classify(ended: ProcessResult) -> LaunchExit:
    """Classify how the launch ended, for the restart policy."""
    finished = ended.finished
    if early_exit := exit_verdicts.classify_early(ended):
        return early_exit
    if finished and finished.ok:
        # The exit code does not matter once the CLI has reported its result.
        stopped = finished.reason == "hook_stopped"
        return _BY_A_HOOK if stopped else LaunchExit("clean", "finished")
    if finished and finished.reason.startswith(_ABORTED):
        return LaunchExit("interrupted", "interrupted, by SIGINT")
    if not finished and (ending := exit_verdicts.classify_signal(ended.code)):
        return ending
    return _classify_failure(ended)


def _classify_failure(ended: ProcessResult) -> LaunchExit:
    message, rest = _find_own_words(ended)
    resets_at = ended.refused.resets_at if ended.refused else None
    return exit_verdicts.make_failed_exit(
        _find_verdict(ended, message), message, resets_at or _find_epoch(message), rest
    )


def _find_verdict(ended: ProcessResult, message: str) -> ExitVerdict:
    reason = ended.finished.reason if ended.finished else ""
    status = ended.finished.status if ended.finished else None
    if reason in _REASONS:
        verdict = _REASONS[reason]
    elif unpaid := _match_money(message):
        verdict = unpaid
    elif refused := exit_verdicts.match_status(status):
        verdict = refused
    elif ended.refused:
        verdict = LIMIT
    else:
        verdict = _match_message(message) or _classify_unexplained(ended, status)
    return verdict


def _match_message(message: str) -> ExitVerdict | None:
    return exit_verdicts.match_sentence(message, _SENTENCES) or message_verdicts.find_verdict(
        message, is_error=True
    )


def _match_money(message: str) -> ExitVerdict | None:
    if not _OUT_OF_MONEY.search(message):
        return None
    # A person must pay, unless the message mentions that the limit resets.
    return LIMIT if "reset" in message.lower() else exit_verdicts.UNPAID


def _classify_unexplained(ended: ProcessResult, status: int | None) -> ExitVerdict:
    if ended.resumes and status == _REFUSED:
        return exit_verdicts.POISONED  # the API would refuse the resumed session again
    return (
        "crash",
        f"failed with exit code {ended.code}" if ended.code else "exited without a result",
    )


def _find_own_words(ended: ProcessResult) -> tuple[str, str]:
    """Return the program's error message, from its result or from standard error, and the rest.

    On standard error, the message may be inside a stack trace. If no line is recognized, return the
    last line.
    """
    finished = ended.finished
    if finished and (message := " ".join((finished.text, *finished.errors)).strip()):
        return exit_verdicts.normalize_sentence(message), ""
    lines = [
        exit_verdicts.normalize_sentence(line) for line in ended.errors.splitlines() if line.strip()
    ]
    for place, line in enumerate(lines):
        if _match_money(line) or _match_message(line):
            return line, exit_verdicts.join_rest(lines, place)
    return lines[-1] if lines else "", ""


def _find_epoch(message: str) -> int | None:
    """Return the reset time that older versions add to their message after a `|`."""
    match = re.search(r"\|(\d{10})\b", message)
    return int(match[1]) if match else None
