"""Claude Code is parsed on recordings of the real one and on bytes that it should never send."""

import json
import re
import shlex
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordings.recording import KEPT, Recording, traces
from rekindle.documents.hooks.hook_record import HookRecord
from rekindle.documents.launches.launch_types import (
    AssistantText,
    CompactionReport,
    FinalReport,
    LaunchExit,
    LaunchSpec,
    LimitReport,
    ProcessResult,
    RetryReport,
    SessionOpened,
    ToolCallFinished,
    ToolCallStarted,
    UsageReport,
)
from rekindle.documents.manifest import Permissions, Persona
from rekindle.errors import UnenforceableError, UsageError
from rekindle.harnesses.claude_code import claude_harness
from rekindle.stores.folders.agent_folder import RekindleFolder
from rekindle.thresholds.storage import JSON_LINE_BYTES

SESSION = "6f1c2a34-0000-4000-8000-00000000abcd"
OTHER = "6f1c2a34-0000-4000-8000-00000000dcba"
MODEL = "claude-opus-5-5"
TEXT = ["SessionOpened", "AssistantText", "UsageReport", "FinalReport"]
TOOL = [
    "SessionOpened",
    "ToolCallStarted",
    "UsageReport",
    "AssistantText",
    "UsageReport",
    "FinalReport",
]
REFUSED = ["SessionOpened", "RetryReport", "FinalReport"]

ENDS = {
    "text": "clean",
    "asked": "clean",
    "tool": "clean",
    "failing-tool": "clean",
    "parallel": "clean",
    "subagent": "clean",
    "cut-stream": "clean",
    "compaction": "clean",
    "clear": "clean",
    "braked": "interrupted",
    "resume": "clean",
    "resume-after-sigkill": "clean",
    "resume-truncated": "clean",
    "resume-foreign": "clean",
    "refused-401": "auth",
    "refused-429": "limit",
    "refused-500": "overload",
    "refused-529": "overload",
    "no-network": "network",
    "limit": "limit",
    "no-money": "billing",
    "no-key": "auth",
    "too-long": "context-full",
    "too-long-later": "context-full",
    "blocked": "context-full",
    "wide-window": "clean",
    "max-turns": "budget",
    "budget": "budget",
    "sigint": "interrupted",
    "sigint-while-speaking": "interrupted",
    "sigterm": "interrupted",
    "sigkill": "crash",
    "session-id-taken": "crash",
    "fork": "resume-failed",
    "resume-missing": "resume-failed",
    "resume-corrupt": "resume-failed",
    "resume-poisoned": "resume-failed",
}


def ended(**facts) -> ProcessResult:
    return ProcessResult(**{"code": 1, "session": SESSION, **facts})


def failed(text: str, **facts) -> FinalReport:
    return FinalReport(session=SESSION, ok=False, reason="api_error", text=text, **facts)


def line(**fields) -> bytes:
    return json.dumps(fields).encode()


def assistant(text: str = "words", tokens: object = 500, **fields) -> bytes:
    message = {"model": MODEL, "usage": {"input_tokens": tokens}}
    content = [{"type": "text", "text": text}]
    return line(type="assistant", message={**message, "content": content}, **fields)


# Recordings


def test_every_recording_has_its_expectation():
    """A case that is recorded is looked at, and the other way round."""
    assert {path.stem for path in KEPT.glob("*.jsonl")} == set(ENDS)


@pytest.mark.parametrize("case", ENDS)
def test_a_recording(case):
    """Each launch of the real program ends as what it was; what it showed, the contract has."""
    recording = Recording.load(case)
    assert recording.exit.kind == ENDS[case]
    assert 0 < len(recording.exit.words) <= 240
    assert "\n" not in recording.exit.words


@pytest.mark.parametrize("case", ENDS)
def test_recordings_tell_nothing_of_the_machine(case):
    """They contain no path of the recording machine, no key and no person's name."""
    text = (KEPT / f"{case}.jsonl").read_text()
    assert traces(text) == []
    assert not re.search(r"sk-\w|Bearer|\w@(?!builtin)\w+\.", text)


def test_exit_codes_tell_little():
    """SIGINT ends with 0 like success, and a missing session with 1 like a limit."""
    codes = {case: Recording.load(case).code for case in ("sigint", "text", "limit", "sigterm")}
    assert codes == {"sigint": 0, "text": 0, "limit": 1, "sigterm": 143}
    assert Recording.load("resume-missing").code == 1
    assert Recording.load("sigkill").code == -9


def test_a_tool_call_in_detail():
    """The session, the call with what it is about, the tokens, the answer and the account of it."""
    recording = Recording.load("tool")
    opened, called, used, returned, said, last, finished = recording.seen
    assert opened == SessionOpened(recording.session, MODEL, "2.1.325", billed=True)
    given = called.arguments
    assert given["command"] == "echo from the tool"
    assert called == ToolCallStarted("Bash", called.call, "echo from the tool", given)
    assert called.call.startswith("toolu_")
    assert (used.usage.tokens, used.usage.model, used.usage.known) == (1230, MODEL, "unknown")
    assert (returned, said) == (ToolCallFinished(called.call), AssistantText("all done"))
    assert used.turn != last.turn != ""
    assert last.usage.tokens == 3230
    assert (finished.ok, finished.reason, finished.text) == (True, "completed", "all done")
    assert finished.windows == {MODEL: 1_000_000}
    assert finished.usd > 0
    assert finished.tokens == 1230 + 3230 + 15


def test_a_limit_in_detail():
    """When a limit ends is told as a time, and in the CLI's own sentence."""
    recording = Recording.load("limit")
    assert recording.last(LimitReport) == LimitReport(4_102_444_800)
    ending = recording.exit
    assert (ending.resets_at, ending.hint) == (4_102_444_800, recording.last(FinalReport).text)
    assert "resets" in ending.hint


def test_a_retry_in_detail():
    """Retries of the CLI are reported with their status and their wait."""
    (retried,) = [
        seen for seen in Recording.load("refused-529").seen if isinstance(seen, RetryReport)
    ]
    assert retried.status == 529
    assert 0 < retried.seconds < 60


def test_a_compaction_in_detail():
    """It reports the size of the conversation before and after."""
    compacted = Recording.load("compaction").last(CompactionReport)
    assert (compacted.before, compacted.after) == (118, 2585)


def test_a_sub_agent_fills_no_window_of_ours():
    """The 77,000 tokens that a sub-agent used are nowhere in what is seen."""
    recording = Recording.load("subagent")
    assert any("77000" in json.dumps(each) for each in recording.stream)
    tokens = [seen.usage.tokens for seen in recording.seen if isinstance(seen, UsageReport)]
    assert tokens == [100, 3230]


def test_an_error_is_nothing_that_the_model_said():
    """The message that the CLI writes in the model's place is not taken for its words."""
    recording = Recording.load("refused-529")
    assert any("<synthetic>" in json.dumps(each) for each in recording.stream)
    assert not any(isinstance(seen, AssistantText | UsageReport) for seen in recording.seen)


def test_a_cleared_conversation_is_another_session():
    """A prompt that is a `/clear` leaves the session that was asked for."""
    recording = Recording.load("clear")
    assert recording.last(SessionOpened).session != recording.session


@pytest.mark.parametrize(
    ("case", "events"),
    [
        ("text", ["SessionStart:startup", "UserPromptSubmit", "SessionEnd"]),
        ("resume", ["SessionStart:resume", "UserPromptSubmit", "SessionEnd"]),
        ("fork", ["SessionStart:fork", "UserPromptSubmit", "SessionEnd"]),
        ("clear", ["SessionStart:startup", "SessionEnd", "SessionStart:clear", "SessionEnd"]),
        ("failing-tool", ["PostToolUseFailure", "PostToolBatch", "SessionEnd"]),
        ("compaction", ["PostToolBatch", "PreCompact", "SessionStart:compact", "SessionEnd"]),
        ("sigkill", ["SessionStart:startup", "UserPromptSubmit"]),
    ],
)
def test_hooks_that_fired(case, events):
    """Every event that we hook has been seen to fire by our own settings, in this order."""
    fired = [event for event, _ in Recording.load(case).hooks]
    assert fired[-len(events) :] == events


def test_hook_payloads_become_events():
    """Each payload is read as the event of its hook, for its session."""
    read = Counter()
    for case in ENDS:
        recording = Recording.load(case)
        for word, payload in recording.hooks:
            event, _, source = word.partition(":")
            now = datetime(2026, 4, 9, tzinfo=UTC)
            hook = HookRecord(
                harness="claude-code",
                event=event,
                source=source,
                ts=now,
                payload=json.dumps(payload).encode(),
            )
            fact = claude_harness.read_hook(hook)
            assert fact is None or fact.session == payload["session_id"]
            read[type(fact).__name__] += 1
    assert set(read) == {
        *("SessionStarted", "SessionEnded", "PromptSubmitted", "SessionCompacted", "Heartbeat"),
        "NoneType",  # the brake reports nothing
    }


def test_half_a_character_in_a_prompt():
    """A prompt that was cut through an emoji is kept, with a mark in its place."""
    payload = b'{"session_id":"' + SESSION.encode() + rb'","prompt":"a\ud83d b"}'
    now = datetime(2026, 4, 9, tzinfo=UTC)
    fact = claude_harness.read_hook(
        HookRecord(harness="claude-code", event="UserPromptSubmit", ts=now, payload=payload)
    )
    assert fact.text == "a\ufffd b"


# Starting


def test_a_fresh_session():
    """The whole command, with nothing in it that was not asked for."""
    command = claude_harness.command(LaunchSpec(session=SESSION))
    headless = ("claude", "-p", "--output-format=stream-json", "--verbose")
    assert command.argv == (*headless, f"--session-id={SESSION}")


def test_a_session_that_resumes():
    """The command names the session to resume and has no system prompt: the session has its own."""
    persona = Persona(system_prompt_file="persona.md", temperature=0.2)
    start = LaunchSpec(session=SESSION, resumes=True, persona=persona, program=("nice", "claude"))
    argv = claude_harness.command(start).argv
    assert argv[:2] == ("nice", "claude")
    assert argv[-1] == f"--resume={SESSION}"


def test_values_stay_values():
    """Nothing that a persona or a path says can become an option of its own."""
    permissions = Permissions(allowed_tools=["--danger", "Bash(echo a,b)", ""], deny=["-x(y)"])
    persona = Persona(permissions=permissions, system_prompt_file="-p.md")
    argv = claude_harness.command(
        LaunchSpec(session=SESSION, hook=("-h",), scratch="-s", persona=persona)
    ).argv
    assert argv[5:] == (
        "--settings=-s/hooks.json",
        "--tools=--danger,Bash",
        "--strict-mcp-config",
        "--allowedTools=--danger",
        "--allowedTools=Bash(echo a,b)",
        "--disallowedTools=-x(y)",
        "--append-system-prompt-file=-p.md",
    )


def test_in_a_terminal():
    """There is no stream; the task is the last argument, and our settings contain hooks alone."""
    start = LaunchSpec(
        session=SESSION, hook=("hook",), scratch="/run", interactive=True, prompt="Ship it."
    )
    command = claude_harness.command(start)
    settings = "--settings=/run/hooks.json"
    assert command.argv == ("claude", f"--session-id={SESSION}", settings, "--", "Ship it.")
    assert list(json.loads(command.files["hooks.json"])) == ["hooks"]
    going_on = LaunchSpec(session=SESSION, resumes=True, interactive=True)
    assert claude_harness.command(going_on).argv == ("claude", f"--resume={SESSION}")


@pytest.mark.parametrize("prompt", ["/clear it", "-p", "--help", "!ls", "\n /clear it"])
def test_a_prompt_in_a_terminal_is_not_a_command(prompt):
    """A space before it would be removed."""
    start = LaunchSpec(session=SESSION, interactive=True, prompt=prompt)
    assert claude_harness.command(start).argv[-1] == f"The task: {prompt}"


def test_a_prompt_that_no_command_line_holds():
    """Our own error refuses it, with a useful message."""
    with pytest.raises(UsageError, match="too long for Claude Code in a terminal"):
        claude_harness.command(LaunchSpec(session=SESSION, interactive=True, prompt="ä" * 70_000))


@pytest.mark.parametrize("session", ["", "latest", f"{SESSION} ", f"{SESSION}\n", SESSION.upper()])
def test_an_invalid_session_id(session):
    """Only an id that the CLI would find under exactly this name is requested."""
    with pytest.raises(UsageError, match="is not a valid session id"):
        claude_harness.command(LaunchSpec(session=session))


def test_hooks_are_commands_of_a_shell():
    """Spaces and quotes in a path stay in it, and every hook has its own time limit."""
    hooks = claude_harness.hooks(("/a b/py", "-I", "it's.pyc"), supervised=True, folder="/$HOME/x")
    entries = [entry for entries in hooks.values() for entry in entries]
    for entry in entries:
        (hook,) = entry["hooks"]
        words = shlex.split(hook["command"])
        assert words[:4] == ["/a b/py", "-I", "it's.pyc", "claude-code"]
        assert words[5:] == ["/$HOME/x", "||", "true"]
        assert (hook["type"], hook["timeout"]) == ("command", 10)
    starts = [shlex.split(entry["hooks"][0]["command"])[4] for entry in hooks["SessionStart"]]
    assert starts == [f"SessionStart:{entry['matcher']}" for entry in hooks["SessionStart"]]
    assert "PostToolBatch" not in claude_harness.hooks(("hook",), supervised=False)


# The stream


@given(st.binary())
def test_any_bytes_are_read(data):
    """Nothing that a program prints can raise."""
    assert isinstance(claude_harness.read_stream(data), tuple)


SMALL = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "\ud800x"])
VALUES = SMALL | st.lists(SMALL, max_size=3) | st.dictionaries(st.just("x"), SMALL)
MESSAGE = {"content": st.lists(VALUES, max_size=3), "usage": VALUES, "model": SMALL}
BLOCK = {
    "type": st.sampled_from(["text", "tool_use"]),
    "text": SMALL,
    "name": SMALL,
    "input": VALUES,
}
FIELDS = {
    "session_id": SMALL,
    "message": VALUES
    | st.fixed_dictionaries(MESSAGE)
    | st.fixed_dictionaries({"content": st.lists(st.fixed_dictionaries(BLOCK), max_size=3)}),
    "rate_limit_info": VALUES
    | st.fixed_dictionaries({"status": st.just("rejected"), "resetsAt": SMALL}),
    "compact_metadata": VALUES | st.dictionaries(st.just("pre_tokens"), SMALL),
    "modelUsage": VALUES
    | st.dictionaries(st.just("m"), st.dictionaries(st.just("contextWindow"), SMALL)),
}
PLAIN = ("retry_delay_ms", "error_status", "errors", "result", "total_cost_usd", "is_error")


@given(
    st.sampled_from(["system", "assistant", "result", "rate_limit_event"]),
    st.sampled_from(["init", "api_retry", "compact_boundary", "success"]),
    st.fixed_dictionaries({**FIELDS, **dict.fromkeys(PLAIN, VALUES)}),
)
def test_any_fields_are_read(kind, subtype, fields):
    """A line of a kind that we know, with fields of any kind, gives what can be written again."""
    seen = claude_harness.read_stream(line(type=kind, subtype=subtype, **fields))
    assert msgspec.json.encode(seen)


@pytest.mark.parametrize("case", ["tool", "limit", "compaction"])
def test_torn_lines_show_nothing(case):
    """A torn line gives nothing; whole lines are read."""
    for record in Recording.load(case).stream:
        whole = json.dumps(record).encode()
        assert all(
            claude_harness.read_stream(whole[:end]) == () for end in range(0, len(whole), 97)
        )


@pytest.mark.parametrize(
    "hostile",
    [
        b'{"type":"result","x":' + b"[" * 100_000,
        b'{"type":"system","subtype":"init","session_id":"../../etc"}',
        b'{"type":"rate_limit_event","rate_limit_info":{"status":"allowed","overageStatus":"rejected"}}',
        b'["type"]',
        b"null",
        b'{"type":"result"' + b" " * JSON_LINE_BYTES + b"}",
    ],
    ids=["nested", "no session", "allowed", "list", "null", "huge"],
)
def test_lines_that_show_nothing(hostile):
    """Hostile lines, and those that only look like a stop, are ignored."""
    assert claude_harness.read_stream(hostile) == ()


def test_half_a_character():
    """A result whose text was cut through an emoji is still a result, and can be written again."""
    cut = rb'{"type":"result","result":"a\ud83d \\ud83d \ud83d\ude00"}'
    (finished,) = claude_harness.read_stream(cut)
    assert finished.text == "a\ufffd \\ud83d \U0001f600"
    assert msgspec.json.encode(finished)


def test_a_session_id_of_an_error_is_checked():
    """The session id in a result is used only if it is valid."""
    (finished,) = claude_harness.read_stream(line(type="result", session_id="../x"))
    assert (finished.session, finished.ok) == ("", False)


# Usage


def test_usage_of_a_transcript():
    """The last turn counts: what was sent, from the cache or not, in the window that was learnt."""
    tail = Recording.load("tool").tail
    used = claude_harness.usage(tail, {MODEL: 200_000})
    assert (used.tokens, used.window, used.known) == (3230, 200_000, "reported")


def test_usage_without_a_window():
    """If the model's window is unknown, nothing is guessed."""
    used = claude_harness.usage(Recording.load("tool").tail, {f"{MODEL}[1m]": 1_000_000})
    assert (used.tokens, used.window, used.known) == (3230, None, "unknown")


def test_usage_of_a_wide_window():
    """One model with two windows has two names, and the one that was asked for counts."""
    recording, name = Recording.load("wide-window"), "claude-sonnet-4-5"
    windows = {name: 200_000, **recording.last(FinalReport).windows}
    assert recording.last(UsageReport).usage.model == name
    assert recording.last(SessionOpened).model == f"{name}[1m]"
    assert claude_harness.usage(recording.tail, windows).window == 1_000_000


def test_usage_of_a_killed_session():
    """The turn whose tool was running is known already."""
    assert claude_harness.usage(Recording.load("sigkill").tail, {}).tokens == 100


def test_usage_after_a_compaction():
    """A conversation that has just been summarised is as large as its summary."""
    lines = Recording.load("compaction").tail.splitlines(keepends=True)
    place = next(number for number, each in enumerate(lines) if b'"compact_boundary"' in each)
    before, until = b"".join(lines[:place]), b"".join(lines[: place + 1])
    assert claude_harness.usage(before, {}).tokens == 100
    assert claude_harness.usage(until, {MODEL: 200_000}).tokens == 2585
    assert claude_harness.usage(until.replace(b"postTokens", b"unsaid"), {}) is None
    assert claude_harness.usage(b"".join(lines), {}).tokens == 3230


def test_usage_skips_what_is_not_ours():
    """Sub-agents, the CLI's own messages and requests that are repeated are passed over."""
    ours = assistant(tokens=700)
    side = assistant(tokens=800, isSidechain=True)
    blob = line(type="api-request-blob", message={"model": MODEL, "usage": {"input_tokens": 1}})
    synthetic = ours.replace(MODEL.encode(), b"<synthetic>").replace(b"700", b"0")
    torn = assistant(tokens=900)[:-20]
    tail = b"\n".join([ours[30:], ours, side, blob, synthetic, torn])
    assert claude_harness.usage(tail, {}).tokens == 700


@given(st.binary(), st.integers(0, 2000), st.integers(0, 2000))
def test_any_tail_is_read(noise, start, stop):
    """A transcript that is torn anywhere, with anything in it, gives a usage or none."""
    tail = b"\n".join([assistant(), noise, assistant(tokens=-5), assistant(tokens="many"), noise])
    used = claude_harness.usage(tail[start:stop], {})
    assert used is None or used.tokens == 500


# Ends


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({"stopped": True, "code": 143}, "interrupted"),
        ({"stopped": True, "finished": failed("x", status=529)}, "interrupted"),
        ({"code": 130}, "interrupted"),
        ({"code": -2}, "interrupted"),
        ({"code": -11}, "crash"),
        ({"code": 0}, "crash"),
        ({"code": 1, "errors": "No conversation found with session ID: x"}, "resume-failed"),
        ({"code": -9, "finished": FinalReport(SESSION, ok=True)}, "clean"),
        ({"code": 143, "finished": failed("", status=529)}, "overload"),
        ({"code": 0, "opened": OTHER}, "crash"),
        ({"resumes": True, "opened": OTHER, "finished": failed("", status=529)}, "resume-failed"),
        ({"code": 1, "refused": LimitReport(7), "finished": failed("")}, "limit"),
        ({"code": -9, "refused": LimitReport(7)}, "crash"),
        ({"refused": LimitReport(7), "finished": FinalReport(SESSION, ok=True)}, "clean"),
        ({"finished": failed("", status=400)}, "crash"),
        ({"resumes": True, "finished": failed("", status=400)}, "resume-failed"),
        ({"resumes": True, "finished": failed("prompt is too long", status=400)}, "context-full"),
        ({"finished": failed("", status=503)}, "overload"),
        ({"finished": failed("", status=403)}, "auth"),
        ({"errors": "something else"}, "crash"),
    ],
)
def test_ends(facts, kind):
    """The precedence is: the operator, the wrong session, a whole result, a signal, the words."""
    assert claude_harness.classify(ended(**facts)).kind == kind


def test_the_words_of_an_end():
    """One line that says what happened, with the program's own sentence where it has one."""
    assert claude_harness.classify(ended(code=-9)) == LaunchExit("crash", "ended by SIGKILL")
    assert claude_harness.classify(ended(code=-99)).words == "ended by signal 99"
    words = claude_harness.classify(ended(code=3, errors="it\nbroke\x1b[0m")).words
    assert words == "failed with exit code 3: broke [0m"


def test_a_time_behind_a_bar():
    """Older versions tell when a limit ends in their sentence; what the stream told is surer."""
    old = failed("usage limit reached, as it was told then|1760000400")
    assert claude_harness.classify(ended(finished=old)).resets_at == 1_760_000_400
    assert claude_harness.classify(ended(finished=old, refused=LimitReport(7))).resets_at == 7


def test_the_telling_line_of_a_trace():
    """A known sentence anywhere in a long trace is the reported one."""
    trace = "Error: it broke\n" + "    at somewhere\n" * 500
    ending = claude_harness.classify(ended(errors=trace + "Session limit reached\n" + trace))
    assert (ending.kind, ending.hint) == ("limit", "Session limit reached")
    far = "word " * 150 + "credit balance"
    assert claude_harness.classify(ended(finished=failed(far))).kind == "billing"


@pytest.mark.parametrize("usd", [2**60, -1, True, "1", None])
def test_a_price_that_is_none(usd):
    """A price that cannot be one is left out, and the rest of the account is read."""
    (finished,) = claude_harness.read_stream(line(type="result", result="x", total_cost_usd=usd))
    assert (finished.usd, finished.text) == (None, "x")


# The set of sentences that others have seen


MESSAGES = Path(__file__).parents[4].parent / "shared" / "facts" / "limit-messages/messages.jsonl"

KINDS = {
    "quota": {"limit"},
    "rate": {"limit"},
    "overload": {"overload"},
    "network": {"network"},
    "auth": {"auth"},
    "billing": {"billing", "limit"},  # a limit, where it says when it ends
    "context_full": {"context-full"},
    "resume_failed": {"resume-failed"},
    "fatal": {"crash"},
    "other": {"crash", "interrupted", "limit"},
}


def messages() -> list[dict[str, object]]:
    if not MESSAGES.exists():
        pytest.skip(f"{MESSAGES} is not there")
    rows = [json.loads(row) for row in MESSAGES.read_text().splitlines()]
    return [row for row in rows if row["cli"] == "claude"]


def as_said(text: str) -> ProcessResult:
    """Return a failed run with this as its last words, on the stream or as a sentence."""
    seen = claude_harness.read_stream(" ".join(text.split("\n")).encode())
    refused = next((each for each in seen if isinstance(each, LimitReport)), None)
    told = [each for each in seen if isinstance(each, FinalReport | AssistantText)]
    return ended(finished=failed(told[0].text if told else text), refused=refused)


def test_sentences_that_stop_a_run():
    """No sentence that was seen in the wild is taken for another kind of end."""
    stops = [row for row in messages() if row["stop"]]
    taken = [(row, claude_harness.classify(as_said(row["text"])).kind) for row in stops]
    wrong = [
        (row["class"], kind, row["text"]) for row, kind in taken if kind not in KINDS[row["class"]]
    ]
    assert len(stops) > 150
    assert wrong == []


def test_sentences_that_stop_nothing():
    """Warnings, panels and an agent that talks about limits end no run that ended well."""
    others = [row["text"] for row in messages() if row["stop"] is False]
    assert others
    for text in others:
        finished = FinalReport(SESSION, ok=True, text=text)
        assert claude_harness.classify(ended(finished=finished, errors=text)).kind == "clean"
        assert not any(
            isinstance(seen, LimitReport) for seen in claude_harness.read_stream(text.encode())
        )


@pytest.mark.parametrize(
    ("shown", "billed"),
    [
        ({"apiKeySource": "ANTHROPIC_API_KEY"}, True),
        ({"apiKeySource": "apiKeyHelper"}, True),
        ({"apiKeySource": "none"}, False),
        ({"apiKeySource": "oauth"}, False),
        ({"apiKeySource": ""}, None),
        ({"apiKeySource": ["x"]}, None),
        ({}, None),
    ],
)
def test_an_account_with_a_key_is_billed_per_token(shown, billed):
    """Without a key it is a subscription: what the CLI then calls its cost is not a bill."""
    line = {"type": "system", "subtype": "init", "session_id": SESSION, "model": MODEL} | shown
    (opened,) = claude_harness.read_stream(json.dumps(line).encode())
    assert opened.billed is billed


def test_paths_that_no_file_tool_may_write():
    """A folder that has the draft is denied by its other names: a denial has no exceptions."""
    start = LaunchSpec(
        session=SESSION,
        draft="/p/.rekindle/drafts/trades/relay.md",
        protected=("/p/rekindle.yaml", "/p/.rekindle", "/p [x]/.git"),
    )
    argv = claude_harness.command(start).argv
    denied = [word.partition("=")[2] for word in argv if word.startswith("--disallowedTools=")]
    assert denied == [
        "Edit(//p/rekindle.yaml)",
        "Edit(//p/rekindle.yaml/**)",
        "Edit(//p/.rekindle/[#-CE-Z_a-ce-z]*)",
        "Edit(//p/.rekindle/d[#-QS-Z_a-qs-z]*)",
        r"Edit(//p \[x\]/.git)",
        r"Edit(//p \[x\]/.git/**)",
    ]


@pytest.mark.parametrize(
    ("rule", "allowed", "denied"),
    [
        ("Write", "Edit(**)", "Write"),
        ("Edit", "Edit(**)", "Edit"),
        ("Write(*)", "Edit(**)", "Write"),
        ("MultiEdit(**)", "Edit(**)", "MultiEdit"),
        ("NotebookEdit", "Edit(**/*.ipynb)", "NotebookEdit"),
        ("Write(//srv/out/**)", "Edit(//srv/out/**)", "Edit(//srv/out/**)"),
        ("Edit(src/*.py)", "Edit(src/*.py)", "Edit(src/*.py)"),
        ("Write(~/(old)/**)", "Edit(~/(old)/**)", "Edit(~/(old)/**)"),
        ("Read", "Read", "Read"),
        ("Bash(echo Write)", "Bash(echo Write)", "Bash(echo Write)"),
        ("WriteAll", "WriteAll", "WriteAll"),
    ],
)
def test_a_file_tool_is_held_to_the_folder_unless_its_rule_names_a_path(rule, allowed, denied):
    """The CLI reads the paths of `Edit` alone, for every tool that writes."""
    permissions = Permissions(allowed_tools=[rule], deny=[rule])
    start = LaunchSpec(session=SESSION, persona=Persona(permissions=permissions))
    argv = claude_harness.command(start).argv
    assert [word for word in argv if "llowedTools=" in word] == [
        f"--allowedTools={allowed}",
        f"--disallowedTools={denied}",
    ]


@pytest.mark.parametrize("key", ["allowed_tools", "deny"])
@pytest.mark.parametrize(
    "rule",
    ["Read, Write, Edit", "Read Write", "Bash(ls:*), Edit", "Bash(a), Edit, Write(b)", "(a)"],
)
def test_a_list_in_one_rule_is_refused(rule, key):
    """The CLI would split it, and its tools would not be limited to the folder."""
    permissions = Permissions(**{key: [rule]})
    start = LaunchSpec(session=SESSION, persona=Persona(permissions=permissions))
    with pytest.raises(UnenforceableError) as raised:
        claude_harness.command(start)
    assert "one tool per item" in raised.value.hint


def test_rules_of_one_tool_are_accepted():
    """This includes tools of servers, and commas inside a rule."""
    rules = ["Read", "mcp__my-server__*", "Bash(git log --format=%h,%s:*)", "Bash(f(x) y)"]
    permissions = Permissions(allowed_tools=rules)
    argv = claude_harness.command(
        LaunchSpec(session=SESSION, persona=Persona(permissions=permissions))
    ).argv
    assert [f"--allowedTools={rule}" for rule in rules] == [
        word for word in argv if word.startswith("--allowedTools=")
    ]


def test_only_drafts_begin_as_the_folder_of_drafts():
    """The patterns above leave names that begin with `dr` open: nothing else of ours does."""
    names = {path.name for path in RekindleFolder(Path("/p")).agent("trades").folders}
    assert {name for name in names if name.startswith("dr")} == {"drafts"}
