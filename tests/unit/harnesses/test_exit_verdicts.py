"""The meaning of each CLI's last words."""

import json
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rekindle.documents.launches.launch_types import (
    AssistantText,
    FinalReport,
    LaunchExit,
    LimitReport,
    ProcessResult,
)
from rekindle.harnesses import (
    command_harness,
    exit_verdicts,
    message_verdicts,
)
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import (
    codex_exits,
    codex_harness,
)
from rekindle.harnesses.gemini import (
    gemini_exits,
    gemini_harness,
)
from rekindle.policy.exits.usage_limits import parse_reset_time

MESSAGES = Path(__file__).parents[3].parent / "shared" / "facts" / "limit-messages/messages.jsonl"

VERDICTS = {"codex": codex_exits.find_verdict, "gemini": gemini_exits.find_verdict}


def kind(cli: str, text: str, status: int | None = None) -> str:
    found = VERDICTS.get(cli, message_verdicts.find_verdict)(text, status)
    return found[0] if found else ""


@pytest.mark.parametrize(
    ("cli", "text", "expected"),
    [
        ("codex", "no rollout found for thread id x", "resume-failed"),
        ("codex", "thread x already has an active writer", "resume-failed"),
        ("codex", "failed to record rollout items: thread x not found", ""),
        ("codex", "the task failed: it ran out of room, it said", "context-full"),
        ("codex", "the task failed: You\u2019ve hit your usage limit", "limit"),
        ("codex", "stream disconnected before completion: it broke", "network"),
        ("codex", "stream disconnected before completion: reason: content_filter", "crash"),
        ("codex", "the workspace is out of credits", "billing"),
        ("codex", "stream error: insufficient_quota: You exceeded your current quota", "billing"),
        ("codex", "Error running remote compact task: unexpected status 402 x", "billing"),
        ("codex", "stream disconnected before completion: unexpected status 413 x", "context-full"),
        ("codex", "unexpected status 401 x", "auth"),
        ("codex", "unexpected status 429 x", "limit"),
        ("codex", "unexpected status 404 x", ""),
        ("codex", "unexpected status 503 x", "overload"),
        ("codex", "5 hour usage limit: 77% remaining, resets 5pm", ""),
        ("codex", "thread limit reached", ""),
        ("gemini", "429: no capacity available for model x", "overload"),
        ("gemini", "429: your quota will reset after 5h", "limit"),
        ("gemini", "quota limit; or switch to another authentication page", "limit"),
        ("gemini", "429: please check your plan and billing details", "limit"),
        ("gemini", '{"code":403,"reason":"BILLING_DISABLED"}', "billing"),
        ("gemini", "Your prepayment credits are depleted; request a quota increase", "billing"),
        ("gemini", "Invalid session identifier", "resume-failed"),
        ("gemini", "credentials are not valid", "auth"),
        ("gemini", "connect ECONNREFUSED 127.0.0.1", "network"),
        ("gemini", "model x  59.8% (Resets in 8h 6m)", ""),
        ("any", "HTTP 429 Too Many\nRequests", "limit"),
        ("any", "getaddrinfo ENOTFOUND x", "network"),
        ("any", "Error: 401 Unauthorized", "auth"),
        ("any", "error: unauthorized", "auth"),
        ("any", "You are not logged in. Run `agent login`.", "auth"),
        ("any", '{"error":{"type":"overloaded_error","message":"Overloaded"}}', "overload"),
        ("any", "503: try later", "overload"),
        ("any", "HTTP 403: no", "auth"),
        ("any", "TypeError: fetch failed", "network"),
        ("any", "Error: connect ECONNREFUSED 192.0.2.7:80", "network"),
        ("any", "it broke", ""),
        ("any", "tests failed: expected 'unauthorized' but got 'ok'", ""),
        ("any", 'AssertionError: "unauthorized" == "ok"', ""),
        ("any", "AssertionError: overloaded function returned 3", ""),
        ("any", "KeyError: 'invalid api key'", ""),
        ("any", "429 tests failed", ""),
        ("any", "error: 500 tests failed", ""),
        ("any", "FAILED tests/test_api.py::test_rate_limit_exceeded", ""),
        ("any", "cannot resolve overloaded operator", ""),
        ("any", "warning: the unauthorized list is empty", ""),
    ],
)
def test_sentences(cli, text, expected):
    """An inner message counts more than the text around it."""
    assert kind(cli, text) == expected


@pytest.mark.parametrize("cli", ["codex", "gemini", "any"])
@pytest.mark.parametrize(
    ("status", "expected"),
    [
        *((401, "auth"), (402, "billing"), (403, "auth"), (413, "context-full"), (429, "limit")),
        *((500, "overload"), (529, "overload"), (400, ""), (200, ""), (None, "")),
    ],
)
def test_statuses(cli, status, expected):
    """If no sentence explains an end, the API's status does."""
    assert kind(cli, "it broke", status) == expected


@given(st.text(), st.none() | st.integers())
def test_any_words(text, status):
    """Whatever a program says, it is taken for one of the kinds or for none."""
    for cli in ("codex", "gemini", "any"):
        assert isinstance(kind(cli, text, status), str)


@pytest.mark.bench
@pytest.mark.parametrize(
    "piece", ["usage ", "reset ", "econn", "limite de uso ", " ", "quota\n", "[", ': "', "a.", "("]
)
def test_hostile_words_take_linear_time(piece):
    """Eight times the text takes about eight times as long, up to 100 KB; not sixty-four."""

    def seconds(size: int) -> float:
        text = (piece * (size // len(piece) + 1))[:size]
        start = time.process_time()
        for cli in ("codex", "gemini", "any"):
            kind(cli, text)
        return time.process_time() - start

    # A busy machine can make one measurement fail, but not three.
    assert any(seconds(100_000) / max(seconds(12_500), 0.002) < 24 for _ in range(3))


# The set of sentences that others have seen


KINDS = {
    "quota": {"limit"},
    "rate": {"limit", "overload"},  # one that gave up tells no more than that it was not served
    "overload": {"overload"},
    "network": {"network"},
    "auth": {"auth"},
    "billing": {"billing", "limit"},  # a limit, where it says when it ends
    "context_full": {"context-full"},
    "resume_failed": {"resume-failed"},
    "fatal": {"crash"},
    "other": {"crash", "budget"},
}


def ends(row: dict) -> list[LaunchExit]:
    """Return the exits of runs with these last words, in each way to print them."""

    def ended(**facts) -> ProcessResult:
        return ProcessResult(**{"code": 1, "session": "x", **facts})

    text = row["text"]
    match row["cli"]:
        case "claude":
            seen = claude_harness.read_stream(" ".join(text.split("\n")).encode())
            told = [each.text for each in seen if isinstance(each, FinalReport | AssistantText)]
            finished = FinalReport(
                "x", ok=False, reason="api_error", text=told[0] if told else text
            )
            refused = next((each for each in seen if isinstance(each, LimitReport)), None)
            return [claude_harness.classify(ended(finished=finished, refused=refused))]
        case "codex":
            seen = codex_harness.read_stream(" ".join(text.split("\n")).encode())
            told = next((each for each in seen if isinstance(each, FinalReport)), None)
            finished = told or FinalReport("", ok=False, errors=(text,))
            return [codex_harness.classify(ended(opened="x", finished=finished))]
        case "gemini":
            return [gemini_harness.classify(ended(finished=FinalReport("", ok=False, text=text)))]
        case _:
            lines = text.encode().split(b"\n")
            last = tuple(said for line in lines for said in command_harness.read_stream(line))
            return [
                command_harness.classify(ended(errors=text)),
                command_harness.classify(ended(last=last)),
                command_harness.classify(ended(errors="warning: no colours\n", last=last)),
                command_harness.classify(ended(errors=f"{text}\n{TRACE}")),
                command_harness.classify(ended(errors=f"warning: no colours\n{text}\n\nbye\n")),
            ]


TRACE = "".join(f"    at step{number} (file:///agent.js:{number}:7)\n" for number in range(12))


def messages() -> list[dict]:
    if not MESSAGES.exists():
        pytest.skip(f"{MESSAGES} is not there")
    return [json.loads(line) for line in MESSAGES.read_text().splitlines()]


def test_every_collected_message_is_classified():
    """No sentence of any CLI that was seen in the wild is taken for another kind of end."""
    stops = [row for row in messages() if row["stop"]]
    found = [(row, end.kind) for row in stops for end in ends(row)]
    wrong = [
        (row["class"], one, row["text"]) for row, one in found if one not in KINDS[row["class"]]
    ]
    table = Counter((row["class"], one) for row, one in found)
    print()
    for (said, one), count in sorted(table.items()):
        print(f"{said:14} taken for {one:14}{count:>4}")
    print(f"{len(stops)} messages that stop, {len(wrong)} taken for another kind")
    assert len(stops) > 300
    assert wrong == []


def test_what_stops_nothing_explains_nothing():
    """Warnings, panels and prose end no run: Claude's where it ended well, the others' anywhere."""
    others = [row for row in messages() if row["stop"] is False]
    assert len(others) > 15
    for row in others:
        if row["cli"] == "claude":
            finished = FinalReport("x", ok=True, text=row["text"])
            ended = ProcessResult(code=0, session="x", finished=finished, errors=row["text"])
            assert claude_harness.classify(ended).kind == "clean"
        else:
            assert kind(row["cli"], row["text"]) == ""
            assert {end.kind for end in ends(row)} == {"crash"}


NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)


def test_the_end_of_a_limit_is_not_lost():
    """In any program it may be lines below, and far above a trace."""
    others = [row for row in messages() if row["cli"] not in {"claude", "codex", "gemini"}]
    assert len(others) > 15
    for row in others:
        whole = parse_reset_time(exit_verdicts.normalize_sentence(row["text"]), now=NOW, zone=UTC)
        for end in ends(row):
            if end.kind == "limit":
                assert parse_reset_time(end.hint, now=NOW, zone=UTC) == whole, row["text"]


@pytest.mark.parametrize(
    "harness", [claude_harness, codex_harness, gemini_harness, command_harness]
)
def test_leaving_a_terminal_counts_as_finished(harness):
    """There is no result and no stop request; a failure is still told apart."""
    session = "0a1b2c3d-0000-4000-8000-00000000000f"
    left = ProcessResult(code=0, session=session, interactive=True)
    assert harness.classify(left).kind == "clean"
    failed = ProcessResult(code=1, session=session, interactive=True, errors="something broke")
    assert harness.classify(failed).kind == "crash"
    stopped = ProcessResult(code=0, session=session, interactive=True, stopped=True)
    assert harness.classify(stopped).kind == "interrupted"
