"""Messages of programs, known and unknown, through the classifier that all harnesses share."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rekindle.documents.launches.launch_types import (
    AssistantText,
    FinalReport,
    LaunchExit,
    ProcessResult,
)
from rekindle.harnesses import command_harness
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness
from rekindle.harnesses.exit_verdicts import normalize_sentence
from rekindle.harnesses.gemini import gemini_harness
from rekindle.harnesses.message_verdicts import find_verdict
from rekindle.policy.exits.usage_limits import parse_reset_time

MESSAGES = Path(__file__).parents[3].parent / "shared" / "facts" / "limit-messages/messages.jsonl"
NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)

HARNESSES = {
    "claude-code": claude_harness,
    "codex": codex_harness,
    "gemini": gemini_harness,
    "command": command_harness,
}


def classify(harness: str, text: str, code: int = 1) -> LaunchExit:
    """Return the exit of a run with this last message, where the CLI prints its errors."""
    ok = code == 0
    finished = {
        "claude-code": FinalReport("x", ok=ok, reason="" if ok else "api_error", text=text),
        "codex": FinalReport("", ok=ok, errors=() if ok else (text,)),
        "gemini": FinalReport("", ok=ok, text=text),
    }.get(harness)
    errors = "" if finished else text
    ended = ProcessResult(code=code, session="x", opened="x", finished=finished, errors=errors)
    return HARNESSES[harness].classify(ended)


# Messages of programs that no harness is made for

TOLD = [
    # limits
    ("Error: you (someone) have reached your weekly usage limit, upgrade for more", "limit"),
    ("You've reached your usage limit. Upgrade your plan or add credits", "limit"),
    ("agent: daily allowance used up", "limit"),
    ("Error: quota exceeded for requests per minute", "limit"),
    ("Your monthly quota has been exhausted.", "limit"),
    ("UsageLimitError: Monthly limit reached. Request 1234", "limit"),
    ("Free usage exceeded\nretrying in ~1 week", "limit"),
    ("error: Rate limit is exceeded. Try again in 30 seconds.", "limit"),
    ("Error: call failed: Request failed with status code 429", "limit"),
    ("providers.base.RateLimitError: Error code: 429 - {'error': {'code': 'x'}}", "limit"),
    ("litellm.RateLimitError: VertexAIException - {", "limit"),
    ("ApiError: 14 RESOURCE_EXHAUSTED: try later", "limit"),
    ('{"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}', "limit"),
    ("{'type': 'error', 'error': {'type': 'rate_limit_error', 'message': 'no'}}", "limit"),
    ("An error occurred (ThrottlingException) when calling the Converse operation: no", "limit"),
    ("ClientError: Too many tokens, please wait before trying again.", "limit"),
    ("Error: stream ended. Status: 429", "limit"),
    ("Client error '429 Too Many Requests' for url 'https://api.example.com/v1'", "limit"),
    ("HTTP 429 (429) Requests to this operation have exceeded the token rate limit", "limit"),
    ("403 You've reached your usage limit for this cycle.", "limit"),
    ("Error: This request would exceed your organization's rate limit of 1,000 tokens", "limit"),
    ("You're out of extra usage · resets 9pm", "limit"),
    ("Error: REQUEST_LIMIT_EXCEEDED: Exceeded workspace rate limit for a model", "limit"),
    ("java.lang.IllegalStateException: API rate limit exceeded while reading it", "limit"),
    ("Maximum api.streaming.Generate reached for this month. (Status Code: 400)", "limit"),
    ("Your API key exceeded your current quota of tokens", "limit"),
    ("429 status code (no body)", "limit"),
    ('402 {"message":"Free quota used. Resets at 10:00 UTC","type":"insufficient_quota"}', "limit"),
    # other reasons
    ("Error: 402 This request requires more credits, or fewer tokens", "billing"),
    ("402 Insufficient credits. Add more in the settings.", "billing"),
    ("Error from the API: status 402 Payment Required", "billing"),
    ("You're out of credits. Add more to continue.", "billing"),
    ('429 "Your team x-1 has either used all available credits or more"', "billing"),
    ("api.exceptions.OverloadedError: Error code: 529 - Overloaded", "overload"),
    ("Error: The model is currently overloaded. Please try again later.", "overload"),
    ("Error: upstream failed with status 503", "overload"),
    ("The system is currently experiencing high demand. code: RATE_LIMITED", "overload"),
    ("429: No capacity available for model x", "overload"),
    ('{"message":"The service may be temporarily overloaded, try later"}', "overload"),
    ("✕ [API Error: 401 invalid access token or token expired]", "auth"),
    ("Error: The SSO session of this profile has expired. Log in again.", "auth"),
    ("ClientError: An error occurred (ExpiredTokenException): The token is expired", "auth"),
    ("Error: API key is invalid", "auth"),
    ("ClientError: 401 UNAUTHENTICATED. Expected a token that can assert it", "auth"),
    ("Error code: 400 - {'error': {'code': 'context_length_exceeded'}}", "context-full"),
    ("BadRequestError: This model's maximum context length is 8192 tokens.", "context-full"),
    ("Network error: error decoding response body", "network"),
    ("API Error (Connection error.)", "network"),
    ("sdk.errors.APIConnectionError: Error communicating with the API", "network"),
    ("sdk.APITimeoutError: Request timed out.", "network"),
]


@pytest.mark.parametrize("harness", HARNESSES)
@pytest.mark.parametrize(("text", "kind"), TOLD)
def test_messages_of_unknown_programs(harness, text, kind):
    """Every harness understands a message that its own CLI never prints."""
    assert classify(harness, text).kind == kind


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("Free usage exceeded\nretrying in ~1 week", timedelta(weeks=1)),
        ("Usage limit reached. Your limit will reset at 2026-07-01 17:38:28", "2026-07-01 17:38"),
        (
            "You've hit your usage limit. It resets when your monthly cycle ends on 7/17/2026.",
            "2026-07-17 23:59",
        ),
        (
            "You reached the limit for requests. Try again in 3 hours, 17 minutes, 52 seconds.",
            timedelta(hours=3, minutes=17, seconds=52),
        ),
    ],
)
@pytest.mark.parametrize("harness", HARNESSES)
def test_the_reset_time_reaches_the_policy(harness, text, wait):
    """The hint contains the reset time, even on another line."""
    found = classify(harness, text)
    reset = parse_reset_time(found.hint, now=NOW, zone=UTC)
    expected = (
        datetime.fromisoformat(wait).replace(tzinfo=UTC) if isinstance(wait, str) else NOW + wait
    )
    assert found.kind == "limit"
    assert reset
    assert timedelta() <= reset - expected <= timedelta(minutes=1)


# Texts that only mention limits

TALK = [
    # prose
    "I'll explain: when you hit your usage limit, the session pauses.",
    "I added a test for the rate limit exceeded error and it fails.",
    "Next I will handle 429 responses from the server.",
    "The docs say that 429 means too many requests.",
    "Done. The retry logic now covers rate_limit_error and overloaded_error.",
    "If you have exceeded your quota, the function returns early.",
    "We return 429 if the client sends more than 10 requests per second.",
    "The usage limit reached in the simulation was 5.",
    "Implemented the quota exceeded dialog.",
    "Summary: the rate limiter allows 429 requests per minute.",
    "You've used 93% of your weekly limit · resets 12pm",
    # reports of work
    "Login required decorator added to 14 views",
    "Bad gateway page added to nginx",
    "Failure modes covered: 429, 503",
    "Internal server error page redesigned",
    "Service unavailable banner now has a close button",
    "Rate limited endpoints documented in docs/api.md",
    "Too many requests handler moved to middleware",
    "Invalid API key test added",
    "Invalid authentication flow now redirects to /login",
    "OAuth token refresh implemented",
    "OAuth error page translated into German",
    "Payment required modal finished",
    "Credit balance widget renders correctly",
    "Insufficient funds check added to the transfer form",
    "Authentication failed counter exported as a metric",
    "Authentication page restyled",
    "Authentication type selector works on mobile",
    "Connection error toast added",
    "Connection refused case is tested",
    "Connection reset handling moved to client.py",
    "Request timed out message shortened",
    "Fetch failed state shown in the list view",
    "Network error boundary added around the router",
    "Socket hang up retried three times in client.js",
    "Gateway timeout raised from 30 to 60 seconds in nginx.conf",
    "Prompt is too long warning shown under the editor",
    "Session token expired test is green",
    "The session expired banner is now dismissible",
    "Please log in button moved to the header",
    "Please sign in page now uses the new layout",
    "Not logged in users are redirected to the home page",
    "API key missing check added to settings.py",
    "Resource exhausted branch has full coverage",
    "Overloaded: operators are now documented",
    "Error pages written: 404, 429, 500, 503",
    "Failed states covered: 401, 429",
    "Status codes handled: 429, 500",
    "Temporarily unavailable items are greyed out",
    "No capacity available label added to the booking calendar",
    "Failed to authenticate message reworded",
    "Failed to refresh token path covered by a test",
    "Exceeded rate limit responses now carry Retry-After",
    "You are rate limited page added",
    "Your request was throttled notice added to the docs",
    "More credits button links to the billing page",
    "Usage limit reached dialog implemented",
    "Your credit balance page loads twice as fast",
    "Unable to connect to database message improved",
    "Stream disconnected event is now logged",
    "Reconnecting... label added to the status bar",
    "Login expired modal covered by a Cypress test",
    "Credentials are expired check added to the CLI",
    "Summary: bad gateway page added, login required decorator tested",
    "Done: too many requests handler, invalid api key handler",
    "TODO: rate limit exceeded page",
    "Fixed: internal server error on empty form",
    "Add login required decorator to views",
    "Document rate limited endpoints",
    "Test cases: 429 retry, 503 backoff",
    "Error handling for 429 done",
    "Exception classes added: RateLimitError, OverloadedError",
    "Failed login attempts: 429",
    "Error codes table updated (429, 503)",
    "HTTP 429 responses now include Retry-After",
    "429 Too Many Requests page added",
    "503: added a maintenance page",
    "Your session expired page is done",
    # source code
    "except openai.RateLimitError: retry()",
    "    raise RateLimitError('Rate limit exceeded')",
    'throw new Error("Rate limit exceeded");',
    "if (response.status === 429) { return wait(); }",
    "import { RateLimitError } from './errors'",
    "class RateLimitError(Exception): pass",
    "return status_code == 429",
    "+    if error.code == 'rate_limit_exceeded':",
    "// Error: 429 means too many requests",
    "# error: quota exceeded",
    "const LIMIT_ERROR = 'rate_limit_error'",
    # compilers, linters and interpreters
    "error[E0429]: `self` imports are only available within a list",
    "error[E0425]: cannot find function `rate_limit_exceeded` in this scope",
    "error: could not compile `rate_limit` (lib) due to 3 previous errors",
    "src/limits.ts:429:12 - error TS2304: Cannot find name 'quota'",
    "Error: src/app.js: Unexpected token (429:3)",
    "error: line 429: unexpected end of file",
    "ModuleNotFoundError: No module named 'rate_limit'",
    "ImportError: cannot import name 'RateLimitError' from 'openai'",
    "NameError: name 'rate_limit_exceeded' is not defined",
    "ReferenceError: RateLimitError is not defined",
    "KeyError: 'insufficient_quota'",
    "error: cannot resolve overloaded operator",
    "Error: ENOENT: no such file or directory, open 'data/429.json'",
    "fatal: ambiguous argument '429': unknown revision",
    # tests
    "FAILED tests/test_api.py::test_rate_limit - RateLimitError: Error code: 429",
    "ERROR tests/test_quota.py - quota exceeded",
    "AssertionError: 429 != 200",
    "AssertionError: expected 200 to equal 429",
    "Error: expect(received).toBe(expected) // Expected: 200 Received: 429",
    "  ● limiter › returns 429 when the rate limit is exceeded",
    "--- FAIL: TestRateLimitExceeded (0.00s)",
    "not ok 3 - rate limit exceeded returns 429",
    "test rate_limit_exceeded ... FAILED",
    "error: 429 tests failed",
    "429 tests failed",
    "Error: 3 of 429 specs failed",
    # other limits and services
    "bash: fork: retry: Resource temporarily unavailable",
    "Error: memory limit exceeded",
    "write error: Disk quota exceeded",
    "Error: Time limit exceeded",
    "RecursionError: maximum recursion depth exceeded",
    "agent thread limit reached",
    "Error: connect ECONNREFUSED 127.0.0.1:5432",
    "requests.exceptions.ConnectionError: HTTPConnectionPool(host='localhost', port=80)",
    "TimeoutError: page.click: Timeout 30000ms exceeded.",
    "Error: GET http://localhost:3000/api failed with status 503",
    "Error: model not found: vendor/model. Did you mean vendor/other?",
    "Error: 404 Not Found",
]


@pytest.mark.parametrize("text", TALK)
def test_a_mention_explains_nothing(text):
    """Prose, source code, tests and other limits are not a message about a usage limit."""
    assert find_verdict(text) is None
    assert classify("command", text).kind == "crash"
    said = ProcessResult(code=1, session="x", last=(AssistantText(text),))
    assert command_harness.classify(said).kind == "crash"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The page now shows this: Rate limit exceeded.", "crash"),
        ("The button says (not logged in)", "crash"),
        ("I checked the log. Too many requests.", "crash"),
        ("Rate limit exceeded.", "limit"),
        ("error: not logged in", "auth"),
        ("fatal: Authentication failed for the API", "auth"),
        ("API Error: 529 Overloaded", "overload"),
        ("HTTP 429: slow down", "limit"),
        ('{"error": {"type": "rate_limit_error"}}', "limit"),
    ],
)
def test_a_line_of_standard_output_must_start_as_an_error(text, kind):
    said = ProcessResult(code=1, session="x", last=(AssistantText(text),))
    assert command_harness.classify(said).kind == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Error: Invalid API key supplied in the header", "auth"),
        ("Invalid API key provided: sk-x", "auth"),
        ("API error: bad gateway at the edge", "overload"),
        ("Error: too many requests in the last minute", "limit"),
    ],
)
def test_an_error_may_continue_after_its_sentence(text, kind):
    assert classify("command", text).kind == kind


@pytest.mark.parametrize("harness", HARNESSES)
@pytest.mark.parametrize("text", [*TALK, *(text for text, _ in TOLD)])
def test_a_run_that_ended_well_explains_itself(harness, text):
    """With exit code 0, no text makes a run a failure."""
    assert classify(harness, text, code=0).kind == "clean"


@pytest.mark.parametrize(
    "summary",
    [
        "=== 1 failed, 12 passed in 0.31s ===",
        "Tests:  1 failed, 12 passed, 13 total",
        "test result: FAILED. 12 passed; 1 failed; 0 ignored",
    ],
)
def test_a_summary_of_tests_ends_what_they_printed(summary):
    """A failed test may print a limit; the program reached none."""
    tests = f"RateLimitError: Error code: 429\nRate limit exceeded.\n{summary}"
    assert classify("command", tests).kind == "crash"
    assert classify("command", f"{tests}\nRate limit exceeded.").kind == "limit"


# Collected messages

KINDS = {
    "quota": {"limit"},
    "rate": {"limit", "overload"},  # a CLI that gave up after retries does not tell which
    "overload": {"overload"},
    "network": {"network"},
    "auth": {"auth"},
    "billing": {"billing", "limit"},  # a limit, if it says when it ends
    "context_full": {"context-full"},
    "fatal": {"crash"},
    "other": {"crash", "budget", "interrupted"},
}
"""Kinds of exit by class. A session that cannot be resumed is special to its own CLI."""
TESTED_LIKE = "Expected a string with minimum length 1"
"""Part of a message that looks like a failed test, so only a CLI's own report counts."""


def read_messages() -> list[dict]:
    if not MESSAGES.exists():
        return []
    return [json.loads(line) for line in MESSAGES.read_text().splitlines()]


@pytest.mark.heavy
@pytest.mark.parametrize("harness", HARNESSES)
@pytest.mark.parametrize("kind", KINDS)
def test_every_collected_message_through_every_harness(kind, harness):
    """No message of any CLI is taken for another kind of exit, and no reset time is lost."""
    rows = [row for row in read_messages() if row["stop"] and row["class"] == kind]
    if not rows:
        pytest.skip(f"{MESSAGES} is not there")
    for row in rows:
        text = row["text"]
        if harness == "command" and TESTED_LIKE in text:
            continue
        found = classify(harness, text)
        assert found.kind in KINDS[kind], text
        if found.kind == "limit":
            whole = parse_reset_time(normalize_sentence(text), now=NOW, zone=UTC)
            assert parse_reset_time(found.hint, now=NOW, zone=UTC) == whole, text
