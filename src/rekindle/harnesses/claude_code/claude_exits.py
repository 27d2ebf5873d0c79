"""Claude Code: how a launch of it ended.

Its exit code tells little: it ends with 0 on SIGINT and with 1 on most failures, and a request that
the API refused is a "success" with `is_error`. So its own word for the end comes first, then the
API's status, then what it says in a sentence; which is read only where a run has failed, because
an agent may well talk about limits.
"""

import re

from rekindle.documents.launches.cli_output import (
    LaunchExit,
    ProcessResult,
)
from rekindle.harnesses import exit_verdicts
from rekindle.harnesses.exit_verdicts import (
    ACCESS,
    FULL,
    LIMIT,
    LOGIN,
    NETWORK,
    OUTAGE,
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
"""What its words for an interruption begin with: in a tool, while the model spoke."""

_BY_A_HOOK = LaunchExit("interrupted", "stopped between two turns, by a hook")

_REFUSED = 400

_OUT_OF_MONEY = re.compile(
    r"credit balance|out of (extra )?usage|usage credits?\b|shared budget|spend limit|add funds"
    r"|usage allocation|limit is set to \$0|usage is paused",
    re.IGNORECASE,
)
_SENTENCES: exit_verdicts.VerdictSentences = (
    (exit_verdicts.MISSING, r"no conversation found"),
    (FULL, r"prompt is too long|model token limit|exceed context limit"),
    (LOGIN, r"/login\b(?! to switch)|not logged in|authentication_error|failed to authenticate"),
    (LOGIN, r"invalid (x-)?api.key|\boauth\b|disabled api key"),
    (ACCESS, r"organization has (been )?disabled"),
    (LIMIT, r"limit reached|(hit|reached) your\b.*\blimit|rate.limit|\(429\)|100% used"),
    (OUTAGE, r"overloaded|api error:? \(?5\d\d\b|internal server error"),
    (NETWORK, r"unable to connect|connection error|fetch failed|timed out|socket hang up"),
    (NETWORK, exit_verdicts.SOCKETS),
)


def classify(ended: ProcessResult) -> LaunchExit:
    """How it ended, for who decides what is to be done about it."""
    finished = ended.finished
    if found := exit_verdicts.classify_early(ended):
        return found
    if finished and finished.ok:
        # Whatever its process did then: after its account, it has nothing more to do.
        stopped = finished.reason == "hook_stopped"
        return _BY_A_HOOK if stopped else LaunchExit("clean", "finished")
    if finished and finished.reason.startswith(_ABORTED):
        return LaunchExit("interrupted", "interrupted, by SIGINT")
    if not finished and (ending := exit_verdicts.classify_signal(ended.code)):
        return ending
    return _classify_failure(ended)


def _classify_failure(ended: ProcessResult) -> LaunchExit:
    said = _find_own_words(ended)
    resets_at = ended.refused.resets_at if ended.refused else None
    return exit_verdicts.make_failed_exit(
        _find_verdict(ended, said), said, resets_at or _find_epoch(said)
    )


def _find_verdict(ended: ProcessResult, said: str) -> ExitVerdict:
    reason = ended.finished.reason if ended.finished else ""
    status = ended.finished.status if ended.finished else None
    if reason in _REASONS:
        found = _REASONS[reason]
    elif unpaid := _match_money(said):
        found = unpaid
    elif refused := exit_verdicts.match_status(status):
        found = refused
    elif ended.refused:
        found = LIMIT
    else:
        found = exit_verdicts.match_sentence(said, _SENTENCES) or _classify_unexplained(
            ended, status
        )
    return found


def _match_money(said: str) -> ExitVerdict | None:
    if not _OUT_OF_MONEY.search(said):
        return None
    # A person is needed as much as for a login, unless it says that it ends by itself.
    return LIMIT if "reset" in said.lower() else exit_verdicts.UNPAID


def _classify_unexplained(ended: ProcessResult, status: int | None) -> ExitVerdict:
    if ended.resumes and status == _REFUSED:
        return exit_verdicts.POISONED  # to go on with it again would be refused again
    return "crash", f"failed with exit code {ended.code}" if ended.code else "left no result"


def _find_own_words(ended: ProcessResult) -> str:
    """What the program says went wrong: in its result, or else on its standard error.

    There it may stand in the middle of a trace; where no line tells more, the last one is taken.
    """
    finished = ended.finished
    if finished and (told := " ".join((finished.text, *finished.errors)).strip()):
        return exit_verdicts.normalize_sentence(told)
    lines = [
        exit_verdicts.normalize_sentence(line) for line in ended.errors.splitlines() if line.strip()
    ]
    telling = (
        line
        for line in lines
        if _match_money(line) or exit_verdicts.match_sentence(line, _SENTENCES)
    )
    return next(telling, lines[-1] if lines else "")


def _find_epoch(said: str) -> int | None:
    """The time that older versions put behind a bar, at the end of their sentence."""
    found = re.search(r"\|(\d{10})\b", said)
    return int(found[1]) if found else None
