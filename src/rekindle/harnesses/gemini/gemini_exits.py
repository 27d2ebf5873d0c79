"""Gemini CLI: how a launch of it ended.

Its exit code is a number of its own, or the status of HTTP as far as a byte holds it; on SIGINT and
SIGTERM it is 0, without a result. Its API refuses with 429 for a spent quota, a rate and a model
without capacity alike, so the sentence comes before the status; what it says of quotas names ways
to log in, so quotas come before logins; and it offers a larger quota to whoever has to pay, so
money comes before quotas.
"""

import re

from rekindle.documents.launches.cli_output import (
    LaunchExit,
    ProcessResult,
    WarningReport,
)
from rekindle.formats.identifiers import to_one_line
from rekindle.harnesses import exit_verdicts
from rekindle.harnesses.exit_verdicts import ExitVerdict
from rekindle.thresholds.texts import EXIT_CHARACTERS, LIMIT_CHARACTERS

_SENTENCES: exit_verdicts.VerdictSentences = (
    (exit_verdicts.MISSING, r"no previous sessions found|invalid session identifier"),
    (
        exit_verdicts.OUTAGE,
        r"no capacity available|model_capacity_exhausted|overloaded|high demand",
    ),
    (exit_verdicts.OUTAGE, r"\bunavailable\b|\binternal error\b"),
    (exit_verdicts.UNPAID, r"billing_disabled|billing to be enabled|credits are depleted"),
    (
        exit_verdicts.LIMIT,
        r"usage limit reached|quota limit|quota exceeded|current quota|quota reached",
    ),
    (exit_verdicts.LIMIT, r"exhausted your (capacity|daily quota)|quota will reset|quota increase"),
    (exit_verdicts.LIMIT, r"resource (has been )?exhausted|resource_exhausted|quota_exhausted"),
    (exit_verdicts.LIMIT, r"\"quotaid\"|retrydelay|rate limit exceeded|\b429\b"),
    (exit_verdicts.FULL, r"exceeds the maximum number of tokens"),
    (exit_verdicts.LOGIN, r"login required|authentication (cancelled|page|type is)|invalid_grant"),
    (exit_verdicts.LOGIN, r"credentials are not valid|set an auth method|api key not valid"),
    (exit_verdicts.LOGIN, r"must specify the \w{1,40} environment variable"),
    (exit_verdicts.NETWORK, r"fetch failed|socket hang up|connection error|timed out"),
    (exit_verdicts.NETWORK, r"(api error|typeerror): terminated|premature close"),
    (exit_verdicts.NETWORK, r"other side closed"),
    (exit_verdicts.NETWORK, exit_verdicts.SOCKETS),
)
_STOPPED: exit_verdicts.VerdictSentences = (
    (("crash", "it did the same again and again, and stopped itself"), r"^loop detected"),
    (exit_verdicts.TURNS, r"^maximum session turns"),
    (("crash", "a hook blocked it"), r"^agent execution blocked"),
)
"""What it complains of last where it then speaks of a success; where anything was said or done
after it, the work went on."""
_CODES = {41: exit_verdicts.LOGIN, 53: exit_verdicts.TURNS}
"""Its own numbers. 42, an input that it does not take, is a session that is gone, or one too many:
its sentence tells which."""
_BYTE = 256
_FIRST_STATUS = 400 % _BYTE
_WHEN = re.compile(r"\bretry in \d|\breset", re.IGNORECASE)
_USUAL = re.compile(r"^(Warning:|YOLO mode|Ripgrep is not|Loaded cached|\s+at |[\s{}\[\]]*$)")
"""What it writes to standard error however it ends, and the steps of a trace."""


def find_verdict(text: str, status: int | None = None) -> ExitVerdict | None:
    """What it means; None: it explains nothing, as its table of usage does not."""
    return exit_verdicts.match_sentence(
        exit_verdicts.normalize_sentence(text), _SENTENCES
    ) or exit_verdicts.match_status(status)


def classify(ended: ProcessResult) -> LaunchExit:
    """How it ended, for who decides what is to be done about it."""
    finished = ended.finished
    if found := exit_verdicts.classify_early(ended):
        return found
    if finished and finished.ok:
        # Whatever its process did then: after its account, it has nothing more to do.
        warned = _find_warning(ended)
        stopped = exit_verdicts.match_sentence(exit_verdicts.normalize_sentence(warned), _STOPPED)
        return (
            exit_verdicts.make_failed_exit(stopped, warned)
            if stopped
            else LaunchExit("clean", "finished")
        )
    if not finished and ended.code == 0 and ended.opened:
        # It ends like this when it is asked to, and nothing but a signal asks it to.
        return LaunchExit("interrupted", "interrupted, by SIGINT or SIGTERM")
    if (
        not finished
        and ended.code < _FIRST_STATUS
        and (by := exit_verdicts.classify_signal(ended.code))
    ):
        return by
    return _classify_failure(ended)


def _find_warning(ended: ProcessResult) -> str:
    """What it complained of, and did not go on after."""
    match ended.last:
        case (*_, WarningReport(text)):
            return text
        case _:
            return ""


def _classify_failure(ended: ProcessResult) -> LaunchExit:
    said, when = _find_own_words(ended)
    kind, name = (
        find_verdict(said, _find_status(ended.code))
        or _CODES.get(ended.code)
        or _classify_unexplained(ended)
    )
    words = to_one_line(f"{name}: {said}" if said else name, EXIT_CHARACTERS)
    return LaunchExit(
        kind, words, to_one_line(f"{said} {when}", LIMIT_CHARACTERS) if kind == "limit" else ""
    )


def _find_status(code: int) -> int | None:
    """The status of HTTP that an exit code came from: 400 to 511 are told from all else by it."""
    return code + _BYTE if _FIRST_STATUS <= code < _BYTE else None


def _classify_unexplained(ended: ProcessResult) -> ExitVerdict:
    if ended.resumes and ended.code == _FIRST_STATUS:
        return exit_verdicts.POISONED  # to go on with it again would be refused again
    return "crash", f"failed with exit code {ended.code}" if ended.code else "left no result"


def _find_own_words(ended: ProcessResult) -> tuple[str, str]:
    """What the program says went wrong, and where on its standard error it says until when.

    Its result leaves out when a day's quota comes back; the trace below it does not.
    """
    lines = [
        exit_verdicts.normalize_sentence(line)
        for line in ended.errors.splitlines()
        if line.strip() and not _USUAL.match(line)
    ]
    when = next((line for line in reversed(lines) if _WHEN.search(line)), "")
    told = (
        exit_verdicts.normalize_sentence(ended.finished.text or _find_warning(ended)).strip()
        if ended.finished
        else ""
    )
    if told:
        return told, "" if _WHEN.search(told) else when
    # All of them together tell what it was; a line by itself may say no more than its status.
    whole = find_verdict(" ".join(lines))
    telling = (line for line in lines if whole and find_verdict(line) == whole)
    return next(telling, lines[-1] if lines else ""), when
