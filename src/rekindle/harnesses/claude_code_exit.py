"""Claude Code: how a launch of it ended.

Its exit code tells little: it ends with 0 on SIGINT and with 1 on most failures, and a request that
the API refused is a "success" with `is_error`. So its own word for the end comes first, then the
API's status, then what it says in a sentence; which is read only where a run has failed, because
an agent may well talk about limits.
"""

import re

from rekindle.documents.launch import Ended, Exit
from rekindle.harnesses import verdicts
from rekindle.harnesses.verdicts import ACCESS, FULL, LIMIT, LOGIN, NETWORK, OUTAGE, Verdict

_REASONS = {
    "prompt_too_long": FULL,
    "blocking_limit": FULL,
    "max_turns": verdicts.TURNS,
    "error_max_turns": verdicts.TURNS,
    "budget_exhausted": verdicts.MONEY,
    "error_max_budget_usd": verdicts.MONEY,
}
_ABORTED = "aborted"
"""What its words for an interruption begin with: in a tool, while the model spoke."""

_BY_A_HOOK = Exit("interrupted", "stopped between two turns, by a hook")

_REFUSED = 400

_OUT_OF_MONEY = re.compile(
    r"credit balance|out of (extra )?usage|usage credits?\b|shared budget|spend limit|add funds"
    r"|usage allocation|limit is set to \$0|usage is paused",
    re.IGNORECASE,
)
_SENTENCES: verdicts.Sentences = (
    (verdicts.MISSING, r"no conversation found"),
    (FULL, r"prompt is too long|model token limit|exceed context limit"),
    (LOGIN, r"/login\b(?! to switch)|not logged in|authentication_error|failed to authenticate"),
    (LOGIN, r"invalid (x-)?api.key|\boauth\b|disabled api key"),
    (ACCESS, r"organization has (been )?disabled"),
    (LIMIT, r"limit reached|(hit|reached) your\b.*\blimit|rate.limit|\(429\)|100% used"),
    (OUTAGE, r"overloaded|api error:? \(?5\d\d\b|internal server error"),
    (NETWORK, r"unable to connect|connection error|fetch failed|timed out|socket hang up"),
    (NETWORK, verdicts.SOCKETS),
)


def classify(ended: Ended) -> Exit:
    """How it ended, for who decides what is to be done about it."""
    finished = ended.finished
    if found := verdicts.beforehand(ended):
        return found
    if finished and finished.ok:
        # Whatever its process did then: after its account, it has nothing more to do.
        stopped = finished.reason == "hook_stopped"
        return _BY_A_HOOK if stopped else Exit("clean", "finished")
    if finished and finished.reason.startswith(_ABORTED):
        return Exit("interrupted", "interrupted, by SIGINT")
    if not finished and (ending := verdicts.by_signal(ended.code)):
        return ending
    return _failed(ended)


def _failed(ended: Ended) -> Exit:
    said = _own_words(ended)
    resets_at = ended.refused.resets_at if ended.refused else None
    return verdicts.failed(_verdict(ended, said), said, resets_at or _epoch(said))


def _verdict(ended: Ended, said: str) -> Verdict:
    reason = ended.finished.reason if ended.finished else ""
    status = ended.finished.status if ended.finished else None
    if reason in _REASONS:
        found = _REASONS[reason]
    elif unpaid := _by_money(said):
        found = unpaid
    elif refused := verdicts.by_status(status):
        found = refused
    elif ended.refused:
        found = LIMIT
    else:
        found = verdicts.by_sentence(said, _SENTENCES) or _unexplained(ended, status)
    return found


def _by_money(said: str) -> Verdict | None:
    if not _OUT_OF_MONEY.search(said):
        return None
    # A person is needed as much as for a login, unless it says that it ends by itself.
    return LIMIT if "reset" in said.lower() else verdicts.UNPAID


def _unexplained(ended: Ended, status: int | None) -> Verdict:
    if ended.resumes and status == _REFUSED:
        return verdicts.POISONED  # to go on with it again would be refused again
    return "crash", f"failed with exit code {ended.code}" if ended.code else "left no result"


def _own_words(ended: Ended) -> str:
    """What the program says went wrong: in its result, or else on its standard error.

    There it may stand in the middle of a trace; where no line tells more, the last one is taken.
    """
    finished = ended.finished
    if finished and (told := " ".join((finished.text, *finished.errors)).strip()):
        return verdicts.plain(told)
    lines = [verdicts.plain(line) for line in ended.errors.splitlines() if line.strip()]
    telling = (line for line in lines if _by_money(line) or verdicts.by_sentence(line, _SENTENCES))
    return next(telling, lines[-1] if lines else "")


def _epoch(said: str) -> int | None:
    """The time that older versions put behind a bar, at the end of their sentence."""
    found = re.search(r"\|(\d{10})\b", said)
    return int(found[1]) if found else None
