"""A turn counts as work only if there is evidence, and errors get the usual verdicts."""

import json
from pathlib import Path

import pytest

from rekindle.documents.launches.launch_types import LimitReport, ProcessResult, ToolCallStarted
from rekindle.harnesses.acp.acp_exits import IDLE, SILENT, classify, read_usage
from rekindle.harnesses.acp.acp_harness import make_harness, read_stream
from rekindle.ports import complete_harness
from rekindle.testing.recordings import load_recordings


def end(
    *, code=0, last=(), errors="", resumes=False, refused=None, stopped=False, opened="", **line
):
    line = {"type": "ended", "calls": 0, "closing": "", "spoke": False, "usd": None, **line}
    line["spoke"] = line["spoke"] or bool(line["closing"])
    (finished,) = read_stream(json.dumps(line).encode())
    return classify(
        ProcessResult(
            code=code,
            session="ses_1",
            resumes=resumes,
            opened=opened,
            finished=finished,
            errors=errors,
            refused=refused,
            stopped=stopped,
            last=last,
        )
    )


def fail(error, **more):
    return end(code=1, error=error, method=more.pop("method", "session/prompt"), **more)


@pytest.mark.parametrize(
    "line",
    [
        {"closing": "It is done."},
        {"spoke": True},
        {"calls": 1, "spoke": True},
        {"rejected": True},
        {"calls": 1, "rejected": True},
        {"calls": 2, "closing": "I fixed the handling of rate limit errors (429)."},
        {"calls": 2, "closing": "The rate limit was reached in the test, as it should be."},
    ],
)
def test_a_turn_with_evidence_is_clean(line):
    assert end(stop="end_turn", **line).kind == "clean"


@pytest.mark.parametrize(
    "line",
    [{}, {"usage": {"totalTokens": 0}}, {"calls": 1}, {"calls": 1, "usage": {"totalTokens": 5}}],
)
def test_a_turn_without_an_answer_is_not(line):
    """Kimi ends a turn like this if the model refused a request, even after calls."""
    last = (ToolCallStarted("Bash", "c1"),) if line.get("calls") else ()
    ended = end(stop="end_turn", last=last, **line)
    assert (ended.kind, ended.words) == ("overload", IDLE)


def test_a_cost_of_zero_is_not_a_report():
    line = {"type": "ended", "stop": "end_turn", "calls": 1, "usd": 0.0}
    assert read_stream(json.dumps(line).encode())[0].usd is None


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        # opencode, Codex and Claude count cached tokens separately.
        (
            {"inputTokens": 3000, "outputTokens": 15, "cachedReadTokens": 1430}
            | {"cachedWriteTokens": 30, "totalTokens": 4475},
            (4460, 15, 1430, 30),
        ),
        # Copilot counts them as input, too.
        (
            {"inputTokens": 4460, "outputTokens": 15, "totalTokens": 4475}
            | {"cachedReadTokens": 1430, "cachedWriteTokens": 0},
            (4460, 15, 1430, 0),
        ),
        ({"inputTokens": 9, "outputTokens": 5, "cachedReadTokens": 1}, (10, 5, 1, 0)),
        (
            {"inputTokens": 9, "outputTokens": 5, "thoughtTokens": 3, "totalTokens": 17},
            (9, 8, 0, 0),
        ),
        (
            {"inputTokens": 9, "outputTokens": 5, "thoughtTokens": 3, "totalTokens": 14},
            (9, 5, 0, 0),
        ),
        ({"inputTokens": "x", "outputTokens": -1}, None),
        ({"totalTokens": 0}, None),
        (None, None),
    ],
)
def test_the_tokens_of_all_requests_are_read_from_the_answer(usage, counts):
    line = {"usage": usage, "calls": 3, "model": "m"}
    found = read_usage(line)
    if counts is None:
        assert found is None
    else:
        assert (found.tokens, found.written, found.cached, found.stored) == counts
        assert (found.model, found.longest) == ("m", found.tokens // 4)
        assert read_usage({**line, "context": 7}).longest == 7


RECORDED = {"no-login": "auth", "limit": "limit", "overload": "overload"} | {
    "limit-later": "limit",
    "resume-missing": "resume-failed",
    "agent-killed": "crash",
    "sigkill": "crash",
    "sigterm": "interrupted",
}
RECORDINGS = [
    pytest.param(folder.name.rpartition("-")[0], recording, id=f"{folder.name}-{recording.name}")
    for folder in sorted((Path(__file__).parents[3] / "recordings/acp").iterdir())
    for recording in load_recordings(folder)
]


@pytest.mark.parametrize(("name", "recording"), RECORDINGS)
def test_each_recorded_launch_has_its_verdict(name, recording):
    """Kimi says nothing about a limit, which therefore looks like an outage."""
    wanted = RECORDED.get(recording.name, "clean")
    if name == "kimi" and wanted == "limit":
        wanted = "overload"
    assert recording.exit(complete_harness(make_harness(name))).kind == wanted


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("exceeded retry limit, last status: 429 Too Many Requests", "limit"),
        ("Error: 429 Rate limit reached for this model", "limit"),
        ("You've hit your usage limit. Try again at 5:14 PM.", "limit"),
        ("Error: 500 The server had an error", "overload"),
        ("unexpected status 503 Service Unavailable", "overload"),
        ("Error: 401 Incorrect API key provided", "auth"),
        ("Error: 400 This model's maximum context length is 128000 tokens.", "context-full"),
    ],
)
def test_a_refused_request_that_looks_like_an_answer_is_found(text, kind):
    """Two adapters report refused requests as `end_turn`, with the error as their text."""
    assert end(stop="end_turn", closing=text).kind == kind
    assert text in end(stop="end_turn", closing=text).words
    if text.startswith("Error"):
        assert end(stop="end_turn", closing=text, calls=3).kind == kind


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": -32603, "message": "x", "data": {"errorKind": "rate_limit"}}, "limit"),
        ({"code": -32603, "message": "x", "data": {"errorKind": "server_error"}}, "overload"),
        ({"code": -32603, "message": "x", "data": {"errorKind": "billing_error"}}, "billing"),
        (
            {
                "code": -32603,
                "message": "prompt is too long: 9 tokens",
                "data": {"errorKind": "invalid_request"},
            },
            "context-full",
        ),
        ({"code": -32000, "message": "Authentication required"}, "auth"),
        ({"code": -32603, "data": {"codexErrorInfo": "usageLimitExceeded"}}, "limit"),
        ({"code": -32603, "data": {"codexErrorInfo": {"serverOverloaded": {}}}}, "overload"),
        ({"code": -32603, "data": {"errorName": "ContextOverflowError"}}, "context-full"),
        ({"code": -32603, "message": "x", "data": {"details": "401 Incorrect API key"}}, "auth"),
        ({"code": -32603, "data": {"details": "400 This model's maximum context length"}}, None),
        ({"code": -31002, "message": "Invalid API key. Please check your API key"}, "auth"),
        ({"code": 429, "message": "x"}, "limit"),
        ({"code": 503, "message": "x"}, "overload"),
        ({"code": -32603, "message": "x", "data": "429 Too Many Requests"}, "limit"),
        ({"code": -32603, "message": "Internal error"}, "crash"),
        ({}, "crash"),
    ],
)
def test_an_error_gets_the_verdict_of_its_data_or_its_text(error, kind):
    assert fail(error).kind == (kind or "context-full")


def test_a_failure_that_an_adapter_reports_overrides_its_answer():
    limit = {"category": "limit", "title": "Usage limit reached"}
    assert end(stop="end_turn", closing="partial", calls=3, failure=limit).kind == "limit"
    outage = {"category": "service", "title": "The service is not available"}
    assert end(stop="end_turn", spoke=True, failure=outage).kind == "overload"


def test_a_limit_has_the_agent_s_words_and_its_reset():
    words = "You've hit your 5-hour limit · resets 2:14am (UTC)"
    error = {"code": -32603, "message": words, "data": {"errorKind": "rate_limit"}}
    assert words in fail(error).hint
    assert fail(error, refused=LimitReport(1794795171)).resets_at == 1794795171
    assert fail({"message": "x"}, refused=LimitReport(7)).kind == "limit"


@pytest.mark.parametrize("code", [-32002, -32603, -32602])
@pytest.mark.parametrize("method", ["session/load", "session/resume"])
def test_a_session_that_is_missing_is_not_resumed_again(code, method):
    error = {"code": code, "message": "Internal error"}
    assert fail(error, method=method, resumes=True).kind == "resume-failed"
    login = {"code": -32000, "message": "Authentication required"}
    assert fail(login, method=method, resumes=True).kind == "auth"


@pytest.mark.parametrize(
    ("stop", "kind"),
    [
        ("refusal", "crash"),
        ("max_tokens", "crash"),
        ("max_turn_requests", "budget"),
        ("cancelled", "interrupted"),
        ("unheard_of", "crash"),
    ],
)
def test_other_stop_reasons_are_not_clean(stop, kind):
    assert end(stop=stop, calls=1).kind == kind


GONE = {"error": {"message": "the agent exited"}, "method": "exit"}


def test_an_agent_that_exits_is_a_crash_explained_by_its_last_lines():
    gone = {**GONE, "opened": "ses_1"}
    assert end(code=3, **gone).words == "exited with code 3"
    assert end(code=137, **gone).words == "ended by SIGKILL"
    assert end(code=143, **gone).kind == "interrupted"
    trace = "Error: connect ECONNREFUSED\n    at node:internal\n"
    assert end(code=1, errors=trace, **gone).kind == "network"
    nothing = ProcessResult(code=127, session="", errors="kimi: No such file or directory")
    assert "No such file" in classify(nothing).words


def test_a_program_that_exits_before_it_opens_a_session_is_misconfigured():
    """A retry cannot help, unless a signal ended it or its last lines name another cause."""
    ended = end(code=2, errors="usage: tool [FILE]\n", **GONE)
    assert (ended.kind, ended.words) == ("misconfigured", f"{SILENT[1]}: usage: tool [FILE]")
    assert end(code=137, **GONE).kind == "crash"
    assert end(code=1, errors="Error: connect ECONNREFUSED\n", **GONE).kind == "network"
    assert end(code=1, errors="Error: please log in\n", **GONE).kind == "auth"


@pytest.mark.parametrize(
    "words", ["it did not answer for 120 seconds", "it speaks version 2 of the protocol, not 1"]
)
def test_what_the_bridge_finds_wrong_is_misconfigured(words):
    error = {"message": words, "data": {"errorKind": "setup"}}
    ended = fail(error, method="initialize")
    assert (ended.kind, words in ended.words) == ("misconfigured", True)
    assert fail(error, method="session/set_model").kind == "misconfigured"


def test_a_program_that_refuses_the_first_request_is_misconfigured():
    assert fail({"code": -32601, "message": "x"}, method="initialize").kind == "misconfigured"
    assert fail({"code": -32000, "message": "x"}, method="initialize").kind == "auth"


def test_an_operator_s_stop_comes_first():
    assert end(stop="cancelled", stopped=True).words == "stopped by the operator"
