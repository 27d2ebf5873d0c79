"""Classify how a turn over the Agent Client Protocol ended.

`end_turn` is not a success: some agents report a refused request that way, with the error as their
text. The protocol has no words for limits, logins and outages either. So the evidence counts: the
text after the last call, a call that was rejected, and everything in an error that a program or a
person reads.
"""

import re
from typing import Any

from rekindle.documents.launches.launch_types import (
    FinalReport,
    LaunchExit,
    ProcessResult,
    WindowUsage,
)
from rekindle.harnesses import exit_verdicts, message_verdicts
from rekindle.harnesses.exit_verdicts import ExitVerdict
from rekindle.harnesses.untrusted_json import to_count, to_mapping, to_text, to_word

_SIGNS: tuple[tuple[ExitVerdict, str], ...] = (
    (exit_verdicts.SETUP, r"^setup$"),
    (exit_verdicts.FULL, r"context_?(?:overflow|window_?exceeded|length_?exceeded)"),
    (exit_verdicts.LIMIT, r"rate_?limit|usage_?limit|quota|\blimit\b"),
    (exit_verdicts.UNPAID, r"billing|insufficient_?(?:credits|funds)"),
    (exit_verdicts.LOGIN, r"auth"),
    (exit_verdicts.OUTAGE, r"server_?error|overload|unavailable|\bservice\b"),
)
"""Words for programs in an error's data or a failure's category."""
_SENTENCES: exit_verdicts.VerdictSentences = (
    (exit_verdicts.LIMIT, r"last error: 429\b"),
    (exit_verdicts.OUTAGE, r"last error: 5\d\d\b|the server had an error"),
    (exit_verdicts.LOGIN, r"incorrect api key|authentication failed with provider"),
)
"""Sentences of these agents, which their own words about retries would hide."""
_RETRIES = re.compile(r"\s*(?:Info: [^:]{1,200}?\.{3})+(?=Error: )")
"""Words of Copilot before an error."""
_SIGN_KEYS = ("errorKind", "codexErrorInfo", "errorName", "category", "name", "type")
_TEXT_KEYS = ("details", "message", "title", "errorMessage")
_LOGIN_REQUIRED, _UNAUTHORIZED = -32000, 401
_STATUSES = range(400, 600)
_REASONS: dict[str, ExitVerdict] = {
    "refusal": exit_verdicts.WITHHELD,
    "max_tokens": ("crash", "the model's answer was cut off because it was too long"),
    "max_turn_requests": exit_verdicts.TURNS,
}
_OPENING = frozenset({"session/load", "session/resume"})
_USUAL = re.compile(r"\s+at |[\s{}\[\]]*$|\(node:\d+\)|\(Use `node|\[session/")
"""Lines on standard error that explain nothing."""
SILENT: ExitVerdict = (
    "misconfigured",
    "it exited before it opened a session, so it may not speak the Agent Client Protocol",
)
IDLE = "it ended its turn without an answer, so its requests were probably refused"


def make_report(ended: dict[str, Any]) -> FinalReport:
    """Return the bridge's last line as a report. It is a success only if there is evidence."""
    error, failure = to_mapping(ended.get("error")), to_mapping(ended.get("failure"))
    closing, calls = to_text(ended.get("closing")), to_count(ended.get("calls")) or 0
    usage = read_usage(ended)
    stop = to_word(ended.get("stop"))
    closing = _RETRIES.sub("", closing)
    # Kimi says nothing if the request after a call was refused. After a rejected call, some agents
    # end their turn, and the model has worked then.
    has_answered = bool(ended.get("spoke")) or ended.get("rejected") is True
    is_refused = bool(closing) and _is_error_text(closing, calls)
    ok = stop == "end_turn" and not failure and has_answered and not is_refused
    code = error.get("code")
    return FinalReport(
        session="",
        ok=ok,
        reason=to_word(ended.get("method")) or stop,
        text=_join_texts(error, failure) or ("" if ok else closing),
        errors=tuple(_list_signs(to_mapping(error.get("data")), failure)),
        status=_UNAUTHORIZED
        if code == _LOGIN_REQUIRED
        else code
        if isinstance(code, int) and code in _STATUSES
        else None,
        usd=read_cost(ended),
        tokens=usage.tokens + usage.written if usage else None,
        usage=usage,
    )


def read_cost(line: dict[str, Any]) -> float | None:
    """Return the launch's cost so far. An agent that does not know a model's price reports 0."""
    usd = line.get("usd")
    return float(usd) if isinstance(usd, int | float) and usd > 0 else None


def read_usage(ended: dict[str, Any]) -> WindowUsage | None:
    """Return the tokens in the answer to the prompt, or None if it has none.

    In the protocol, the kinds of tokens are counted separately. But some agents count cached tokens
    or thoughts twice, as the total then shows.
    """
    counts = to_mapping(ended.get("usage"))
    keys = ("inputTokens", "outputTokens", "cachedReadTokens", "cachedWriteTokens", "thoughtTokens")
    read, written, cached, stored, thoughts = (to_count(counts.get(key)) or 0 for key in keys)
    total = to_count(counts.get("totalTokens"))
    if total is None:
        total = read + written + cached + stored
    if total >= read + written + cached + stored:
        read += cached + stored
    if total >= read + written + thoughts:
        written += thoughts
    if not read and not written:
        return None
    # The price of a request can depend on its length.
    calls = to_count(ended.get("calls")) or 0
    longest = to_count(ended.get("context")) or read // (calls + 1)
    model = to_word(ended.get("model"))
    return WindowUsage(
        read, None, "unknown", model, written, cached=cached, stored=stored, longest=longest
    )


def classify(ended: ProcessResult) -> LaunchExit:
    """Return how the launch ended, for the restart policy."""
    if early_exit := exit_verdicts.classify_early(ended):
        return early_exit
    finished = ended.finished
    if finished is None or finished.reason == "exit":
        return exit_verdicts.classify_signal(ended.code) or _classify_crash(ended)
    if finished.ok:
        return LaunchExit("clean", "finished")
    if finished.reason == "cancelled":
        return LaunchExit("interrupted", "its turn was cancelled")
    is_idle = finished.reason == "end_turn" and not finished.text and not finished.errors
    if is_idle:
        return LaunchExit("overload", IDLE)
    verdict = _find_verdict(finished)
    resets_at = ended.refused.resets_at if ended.refused else None
    if verdict is None and resets_at is not None:
        verdict = exit_verdicts.LIMIT
    if finished.reason == "initialize":
        verdict = verdict or exit_verdicts.SETUP
    if finished.reason in _OPENING and (verdict is None or verdict[0] in {"context-full", "crash"}):
        verdict = exit_verdicts.MISSING
    unexplained: ExitVerdict = ("crash", "the agent reported an error")
    verdict = verdict or _REASONS.get(finished.reason) or unexplained
    return exit_verdicts.make_failed_exit(verdict, finished.text, resets_at)


def _find_verdict(finished: FinalReport) -> ExitVerdict | None:
    signs = exit_verdicts.match_sentence(" ".join(finished.errors), _SIGNS)
    if signs is not None and signs != exit_verdicts.OUTAGE:
        return signs
    # An adapter's own error code can hide what the model's API has answered.
    told = _read_text(finished.text, finished.status, is_error=True)
    return told or signs


def _read_text(text: str, status: int | None = None, *, is_error: bool) -> ExitVerdict | None:
    words = exit_verdicts.normalize_sentence(text)
    is_error = is_error or words.startswith("Error: ")
    own = exit_verdicts.match_sentence(words, _SENTENCES) if is_error else None
    return own or message_verdicts.find_verdict(text, status, is_error=is_error)


def _classify_crash(ended: ProcessResult) -> LaunchExit:
    """Return the exit of an agent that exited in its turn, by its last lines."""
    lines = [
        exit_verdicts.normalize_sentence(line)
        for line in ended.errors.splitlines()
        if not _USUAL.match(line)
    ]
    for place in range(len(lines) - 1, -1, -1):
        if verdict := message_verdicts.find_verdict(lines[place]):
            rest = exit_verdicts.join_rest(lines, place)
            return exit_verdicts.make_failed_exit(verdict, lines[place], rest=rest)
    how = f"exited with code {ended.code}" if ended.code else "exited in its turn"
    has_started = ended.finished is None or bool(ended.opened)
    unexplained: ExitVerdict = ("crash", how) if has_started else SILENT
    return exit_verdicts.make_failed_exit(unexplained, lines[-1] if lines else "")


def _is_error_text(closing: str, calls: int) -> bool:
    """Return whether the last text is an error message. After calls, it must start as one."""
    verdict = _read_text(closing, is_error=False)
    return verdict is not None and (not calls or message_verdicts.starts_as_error(closing))


def _join_texts(error: dict[str, Any], failure: dict[str, Any]) -> str:
    """Return the texts for people, with the most precise one first."""
    data = error.get("data")
    inner = [to_text(data)] if isinstance(data, str) else []
    values = [to_mapping(data).get(key) for key in _TEXT_KEYS]
    values += [error.get("message"), *(failure.get(key) for key in _TEXT_KEYS)]
    texts = dict.fromkeys(text for value in values if (text := to_text(value).strip()))
    return ": ".join([*inner, *texts])


def _list_signs(*sources: dict[str, Any]) -> list[str]:
    """Return the words for programs, which may be keys of a mapping."""
    values = [source.get(key) for source in sources for key in _SIGN_KEYS]
    named = [next(iter(value), "") if isinstance(value, dict) else value for value in values]
    return [word for value in named if (word := to_word(value))]
