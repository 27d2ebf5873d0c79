"""Classify how a Gemini CLI launch ended.

The exit code is one of the CLI's own codes, or the HTTP status modulo 256. On SIGINT and SIGTERM it
is 0, without a result. The API returns 429 for a spent quota, a rate limit and a model without
capacity, so the message is checked before the status. Messages about quotas mention ways to log in,
so quotas are checked before logins. Messages about payment offer a larger quota, so payment is
checked before quotas.
"""

import re

from rekindle.documents.launches.launch_types import (
    LaunchExit,
    ProcessResult,
    WarningReport,
)
from rekindle.formats.identifiers import to_one_line
from rekindle.harnesses import exit_verdicts, message_verdicts
from rekindle.harnesses.exit_verdicts import ExitVerdict
from rekindle.thresholds.texts import EXIT_CHARACTERS, LIMIT_CHARACTERS

_SENTENCES: exit_verdicts.VerdictSentences = (
    (exit_verdicts.MISSING, r"no previous sessions found|invalid session identifier"),
    (
        exit_verdicts.OUTAGE,
        r"model_capacity_exhausted|\bunavailable\b(?! \w)|api error: internal error",
    ),
    (exit_verdicts.UNPAID, r"billing to be enabled|credits are depleted"),
    (exit_verdicts.LIMIT, r"quota limit|quota increase"),
    (exit_verdicts.LOGIN, r"must specify the \w{1,40} environment variable"),
    (exit_verdicts.NETWORK, r"(api error|typeerror): terminated|premature close"),
    (exit_verdicts.NETWORK, r"other side closed"),
)
_STOPPED: exit_verdicts.VerdictSentences = (
    (("handoff", "it stopped because it repeated itself"), r"^loop detected"),
    (exit_verdicts.TURNS, r"^maximum session turns"),
    (("crash", "a hook blocked it"), r"^agent execution blocked"),
)
"""Verdicts for warnings that turn a reported success into a failure. A warning counts only if it is
the last output. If more output follows, the work continued.
"""
_CODES = {41: exit_verdicts.LOGIN, 53: exit_verdicts.TURNS}
"""The CLI's own exit codes. Code 42, invalid input, is left out, because it can mean that a session
is missing or already exists. Only the message shows which.
"""
_BYTE = 256
_FIRST_STATUS = 400 % _BYTE
_WHEN = re.compile(r"\bretry(?:ing)? (?:in|after) ~?\d|\breset|\bagain in \d", re.IGNORECASE)
_USUAL = re.compile(r"^(Warning:|YOLO mode|Ripgrep is not|Loaded cached|\s+at |[\s{}\[\]]*$)")
"""Lines on standard error that appear in every run, and stack-trace lines."""


def find_verdict(text: str, status: int | None = None) -> ExitVerdict | None:
    """Return the verdict for a message, or None if it explains nothing, like the usage table."""
    words = exit_verdicts.normalize_sentence(text)
    return exit_verdicts.match_sentence(words, _SENTENCES) or message_verdicts.find_verdict(
        words, status, is_error=True
    )


def classify(ended: ProcessResult) -> LaunchExit:
    """Classify how the launch ended, for the restart policy."""
    finished = ended.finished
    if early_exit := exit_verdicts.classify_early(ended):
        return early_exit
    if finished and finished.ok:
        # The exit code does not matter once the CLI has reported its result.
        warned = _find_warning(ended)
        stopped = exit_verdicts.match_sentence(exit_verdicts.normalize_sentence(warned), _STOPPED)
        return (
            exit_verdicts.make_failed_exit(stopped, warned)
            if stopped
            else LaunchExit("clean", "finished")
        )
    if not finished and ended.code == 0 and ended.opened:
        # The CLI exits with 0 and no result only after a signal.
        return LaunchExit("interrupted", "interrupted, by SIGINT or SIGTERM")
    if (
        not finished
        and ended.code < _FIRST_STATUS
        and (by := exit_verdicts.classify_signal(ended.code))
    ):
        return by
    return _classify_failure(ended)


def _find_warning(ended: ProcessResult) -> str:
    """Return the last item of output if it is a warning, or else ""."""
    match ended.last:
        case (*_, WarningReport(text)):
            return text
        case _:
            return ""


def _classify_failure(ended: ProcessResult) -> LaunchExit:
    message, when = _find_own_words(ended)
    kind, name = (
        find_verdict(message, _find_status(ended.code))
        or _CODES.get(ended.code)
        or _classify_unexplained(ended)
    )
    words = to_one_line(f"{name}: {message}" if message else name, EXIT_CHARACTERS)
    return LaunchExit(
        kind, words, to_one_line(f"{message} {when}", LIMIT_CHARACTERS) if kind == "limit" else ""
    )


def _find_status(code: int) -> int | None:
    """Return the HTTP status, 400 to 511, that an exit code stands for, or None for other codes."""
    return code + _BYTE if _FIRST_STATUS <= code < _BYTE else None


def _classify_unexplained(ended: ProcessResult) -> ExitVerdict:
    if ended.resumes and ended.code == _FIRST_STATUS:
        return exit_verdicts.POISONED  # the API would refuse the resumed session again
    return (
        "crash",
        f"failed with exit code {ended.code}" if ended.code else "exited without a result",
    )


def _find_own_words(ended: ProcessResult) -> tuple[str, str]:
    """Return the program's error message, and the line on standard error with the reset time.

    The reset time of a daily quota is only in the stack trace on standard error, not in the result.
    """
    lines = [
        exit_verdicts.normalize_sentence(line)
        for line in ended.errors.splitlines()
        if line.strip() and not _USUAL.match(line)
    ]
    when = next((line for line in reversed(lines) if _WHEN.search(line)), "")
    message = (
        exit_verdicts.normalize_sentence(ended.finished.text or _find_warning(ended)).strip()
        if ended.finished
        else ""
    )
    if message:
        return message, "" if _WHEN.search(message) else when
    # Use all lines, because a single line may contain only the status.
    verdict = find_verdict(" ".join(lines))
    for place, line in enumerate(lines):
        if verdict and find_verdict(line) == verdict:
            rest = exit_verdicts.join_rest(lines, place)
            return line, rest if when == line else f"{rest} {when}"
    return lines[-1] if lines else "", when
