"""Gemini CLI: how a launch of it ended.

Its exit code is a number of its own, or the status of HTTP as far as a byte holds it; on SIGINT and
SIGTERM it is 0, without a result. Its API refuses with 429 for a spent quota, a rate and a model
without capacity alike, so the sentence comes before the status; what it says of quotas names ways
to log in, so quotas come before logins; and it offers a larger quota to whoever has to pay, so
money comes before quotas.
"""

import re

from rekindle.documents.identity import one_line
from rekindle.documents.launch import Ended, Exit, Warned
from rekindle.harnesses import verdicts
from rekindle.harnesses.verdicts import Verdict
from rekindle.thresholds.texts import EXIT_CHARACTERS, LIMIT_CHARACTERS

_SENTENCES: verdicts.Sentences = (
    (verdicts.MISSING, r"no previous sessions found|invalid session identifier"),
    (verdicts.OUTAGE, r"no capacity available|model_capacity_exhausted|overloaded|high demand"),
    (verdicts.OUTAGE, r"\bunavailable\b|\binternal error\b"),
    (verdicts.UNPAID, r"billing_disabled|billing to be enabled|credits are depleted"),
    (verdicts.LIMIT, r"usage limit reached|quota limit|quota exceeded|current quota|quota reached"),
    (verdicts.LIMIT, r"exhausted your (capacity|daily quota)|quota will reset|quota increase"),
    (verdicts.LIMIT, r"resource (has been )?exhausted|resource_exhausted|quota_exhausted"),
    (verdicts.LIMIT, r"\"quotaid\"|retrydelay|rate limit exceeded|\b429\b"),
    (verdicts.FULL, r"exceeds the maximum number of tokens"),
    (verdicts.LOGIN, r"login required|authentication (cancelled|page|type is)|invalid_grant"),
    (verdicts.LOGIN, r"credentials are not valid|set an auth method|api key not valid"),
    (verdicts.LOGIN, r"must specify the \w{1,40} environment variable"),
    (verdicts.NETWORK, r"fetch failed|socket hang up|connection error|timed out"),
    (verdicts.NETWORK, r"(api error|typeerror): terminated|premature close"),
    (verdicts.NETWORK, r"other side closed"),
    (verdicts.NETWORK, verdicts.SOCKETS),
)
_STOPPED: verdicts.Sentences = (
    (("crash", "it did the same again and again, and stopped itself"), r"^loop detected"),
    (verdicts.TURNS, r"^maximum session turns"),
    (("crash", "a hook blocked it"), r"^agent execution blocked"),
)
"""What it complains of last where it then speaks of a success; where anything was said or done
after it, the work went on."""
_CODES = {41: verdicts.LOGIN, 53: verdicts.TURNS}
"""Its own numbers. 42, an input that it does not take, is a session that is gone, or one too many:
its sentence tells which."""
_BYTE = 256
_FIRST_STATUS = 400 % _BYTE
_WHEN = re.compile(r"\bretry in \d|\breset", re.IGNORECASE)
_USUAL = re.compile(r"^(Warning:|YOLO mode|Ripgrep is not|Loaded cached|\s+at |[\s{}\[\]]*$)")
"""What it writes to standard error however it ends, and the steps of a trace."""


def verdict(text: str, status: int | None = None) -> Verdict | None:
    """What it means; None: it explains nothing, as its table of usage does not."""
    return verdicts.by_sentence(verdicts.plain(text), _SENTENCES) or verdicts.by_status(status)


def classify(ended: Ended) -> Exit:
    """How it ended, for who decides what is to be done about it."""
    finished = ended.finished
    if found := verdicts.beforehand(ended):
        return found
    if finished and finished.ok:
        # Whatever its process did then: after its account, it has nothing more to do.
        warned = _warned(ended)
        stopped = verdicts.by_sentence(verdicts.plain(warned), _STOPPED)
        return verdicts.failed(stopped, warned) if stopped else Exit("clean", "finished")
    if not finished and ended.code == 0 and ended.opened:
        # It ends like this when it is asked to, and nothing but a signal asks it to.
        return Exit("interrupted", "interrupted, by SIGINT or SIGTERM")
    if not finished and ended.code < _FIRST_STATUS and (by := verdicts.by_signal(ended.code)):
        return by
    return _failed(ended)


def _warned(ended: Ended) -> str:
    """What it complained of, and did not go on after."""
    match ended.last:
        case (*_, Warned(text)):
            return text
        case _:
            return ""


def _failed(ended: Ended) -> Exit:
    said, when = _own_words(ended)
    kind, name = verdict(said, _status(ended.code)) or _CODES.get(ended.code) or _unexplained(ended)
    words = one_line(f"{name}: {said}" if said else name, EXIT_CHARACTERS)
    return Exit(
        kind, words, one_line(f"{said} {when}", LIMIT_CHARACTERS) if kind == "limit" else ""
    )


def _status(code: int) -> int | None:
    """The status of HTTP that an exit code came from: 400 to 511 are told from all else by it."""
    return code + _BYTE if _FIRST_STATUS <= code < _BYTE else None


def _unexplained(ended: Ended) -> Verdict:
    if ended.resumes and ended.code == _FIRST_STATUS:
        return verdicts.POISONED  # to go on with it again would be refused again
    return "crash", f"failed with exit code {ended.code}" if ended.code else "left no result"


def _own_words(ended: Ended) -> tuple[str, str]:
    """What the program says went wrong, and where on its standard error it says until when.

    Its result leaves out when a day's quota comes back; the trace below it does not.
    """
    lines = [
        verdicts.plain(line)
        for line in ended.errors.splitlines()
        if line.strip() and not _USUAL.match(line)
    ]
    when = next((line for line in reversed(lines) if _WHEN.search(line)), "")
    told = verdicts.plain(ended.finished.text or _warned(ended)).strip() if ended.finished else ""
    if told:
        return told, "" if _WHEN.search(told) else when
    # All of them together tell what it was; a line by itself may say no more than its status.
    whole = verdict(" ".join(lines))
    telling = (line for line in lines if whole and verdict(line) == whole)
    return next(telling, lines[-1] if lines else ""), when
