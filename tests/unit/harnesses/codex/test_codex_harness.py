"""Codex is parsed on recordings of the real one and on bytes that it should never send."""

import json
import re
import shlex
import subprocess
import tomllib
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recordings.codex_cases import CODEX
from recordings.tape import Tape, as_bytes
from rekindle.documents.hooks.hook_record import HookRecord
from rekindle.documents.launches.launch_types import (
    AssistantText,
    FinalReport,
    LaunchExit,
    LaunchSpec,
    OutputItem,
    ProcessResult,
    RetryReport,
    SessionOpened,
    ToolCallFinished,
    ToolCallStarted,
)
from rekindle.documents.manifest import Permissions, Persona
from rekindle.errors import DocumentError, ManifestError, UnenforceableError, UsageError
from rekindle.harnesses.codex import codex_harness, codex_hooks

SESSION = "01a1dd91-0000-7000-8000-00000000abcd"
OTHER = "01a1dd91-0000-7000-8000-00000000dcba"
TEXT = ["SessionOpened", "AssistantText", "FinalReport"]
TOOL = ["SessionOpened", "ToolCallStarted", "AssistantText", "FinalReport"]
FAILED = ["SessionOpened", "FinalReport", "FinalReport"]
RETRIED = ["SessionOpened", "RetryReport", "FinalReport", "FinalReport"]

ENDS = {
    "text": "clean",
    "asked": "clean",
    "subagent": "clean",
    "tool": "clean",
    "failing-tool": "clean",
    "parallel": "clean",
    "compaction": "clean",
    "fork": "clean",
    "resume": "clean",
    "resume-after-sigkill": "clean",
    "resume-after-refusal": "clean",
    "resume-truncated": "clean",
    "cut-stream": "network",
    "refused-401": "auth",
    "refused-402": "billing",
    "refused-413": "context-full",
    "refused-429": "limit",
    "refused-500": "overload",
    "refused-503": "overload",
    "limit": "limit",
    "no-money": "billing",
    "no-money-in-stream": "billing",
    "no-key": "auth",
    "too-long": "context-full",
    "too-long-later": "context-full",
    "sigint": "interrupted",
    "sigint-while-speaking": "interrupted",
    "sigterm": "interrupted",
    "sigterm-without-network": "interrupted",
    "sigkill": "crash",
    "resume-missing": "resume-failed",
    "resume-corrupt": "resume-failed",
    "resume-foreign": "resume-failed",
    "resume-in-use": "resume-failed",
    "resume-name": "resume-failed",
}


def load(case: str) -> Tape:
    return Tape.read(CODEX.kept / f"{case}.jsonl")


def seen_in(tape: Tape) -> list[OutputItem]:
    return [seen for line in tape.stream for seen in codex_harness.read_stream(as_bytes(line))]


def end_of(tape: Tape) -> LaunchExit:
    seen = seen_in(tape)
    return codex_harness.classify(
        ProcessResult(
            code=tape.code,
            session=tape.session,
            resumes=tape.resumes,
            opened=next((one.session for one in seen if isinstance(one, SessionOpened)), ""),
            finished=next((one for one in reversed(seen) if isinstance(one, FinalReport)), None),
            errors=tape.stderr,
        )
    )


def ended(**facts) -> ProcessResult:
    return ProcessResult(**{"code": 1, "session": SESSION, **facts})


def failed(*errors: str) -> FinalReport:
    return FinalReport("", ok=False, errors=errors)


def line(**fields) -> bytes:
    return json.dumps(fields).encode()


def settings(argv) -> dict:
    """Return the settings on the command line, as Codex reads them."""
    given = [word.removeprefix("--config=") for word in argv if word.startswith("--config=")]
    return dict(pair.split("=", 1) for pair in given)


def value(text: str):
    return tomllib.loads(f"x={text}")["x"]


# Recordings


def test_every_recording_has_its_expectation():
    """A case that is recorded is looked at, and the other way round."""
    assert {path.stem for path in CODEX.kept.glob("*.jsonl")} == set(ENDS)


@pytest.mark.parametrize("case", ENDS)
def test_a_recording(case):
    """Each launch of the real program ends as what it was; what it showed, the contract has."""
    tape = load(case)
    ending = end_of(tape)
    assert ending.kind == ENDS[case]
    assert 0 < len(ending.words) <= 240
    assert "\n" not in ending.words


def test_a_tool_call_in_detail():
    """The session, the call with what it is about, the answer; how full it is tells the rollout."""
    tape = load("tool")
    opened, called, returned, said, finished = seen_in(tape)
    assert opened == SessionOpened(tape.session)
    assert called == ToolCallStarted(
        "command_execution", "item_2", "/bin/bash -lc 'echo from the tool'"
    )
    assert (returned, said) == (ToolCallFinished("item_2"), AssistantText("all done"))
    assert finished == FinalReport("", ok=True, tokens=4475)


def test_a_limit_in_detail():
    """The CLI's own sentence, which says when it ends."""
    ending = end_of(load("limit"))
    assert ending.hint.startswith("You've hit your usage limit.")
    assert ending.hint.endswith("try again at Jan 1st, 2100 12:00 AM.")


def test_a_retry_in_detail():
    """Retries of the CLI are reported with their status, if it names one."""
    retried = [seen for seen in seen_in(load("refused-401")) if isinstance(seen, RetryReport)]
    assert retried == [RetryReport(401, 0.0)]


def test_hooks_in_our_words():
    """Every event of every recording is read, and those that we keep become facts."""
    read: Counter[str] = Counter()
    for case in ENDS:
        for event, payload in load(case).hooks:
            hook = HookRecord(
                harness="codex",
                event=event,
                ts=datetime(2026, 4, 9, tzinfo=UTC),
                payload=json.dumps(payload).encode(),
            )
            fact = codex_harness.read_hook(hook)
            assert fact is None or fact.session == payload["session_id"]
            if event == "SessionStart":
                assert (fact.harness, fact.source) == ("codex", payload["source"])
                assert fact.transcript == payload["transcript_path"]
            if event in {"PostToolUse", "UserPromptSubmit"}:
                assert fact.call  # it identifies two reports of one event
            read[type(fact).__name__] += 1
    assert set(read) == {
        *("SessionStarted", "SessionEnded", "PromptSubmitted", "SessionCompacted", "Heartbeat"),
        "NoneType",  # before a tool, at a turn's end, after a compaction
    }


def test_a_hook_without_a_session():
    """It reports nothing that could be kept."""
    hook = HookRecord(harness="codex", event="Stop", ts=datetime.now(UTC), payload=b"{}")
    with pytest.raises(DocumentError, match="does not name a session"):
        codex_harness.read_hook(hook)


# Starting


def test_a_fresh_session():
    """The whole command, with nothing in it that was not asked for; the prompt comes by stdin."""
    headless = ("codex", "exec", "--json", "--skip-git-repo-check")
    never = '--config=approval_policy="never"'
    assert codex_harness.command(LaunchSpec(session="")).argv == (*headless, never, "-")


def test_a_session_that_resumes():
    """The command names the session to resume and has no system prompt: the session has its own."""
    start = LaunchSpec(
        session=SESSION, resumes=True, instructions="be kind", program=("nice", "codex")
    )
    argv = codex_harness.command(start).argv
    assert argv[:3] == ("nice", "codex", "exec")
    assert argv[-3:] == ("resume", SESSION, "-")
    assert "developer_instructions" not in settings(argv)


def test_commands_of_the_agent_have_a_path_of_their_own():
    """In a terminal they do not: a person may approve one that then runs outside the sandbox."""
    start = LaunchSpec(session="", path="/w/.venv/bin:/usr/bin")
    given = '--config=shell_environment_policy.set.PATH="/w/.venv/bin:/usr/bin"'
    assert given in codex_harness.command(start).argv
    in_terminal = msgspec.structs.replace(start, interactive=True)
    assert not any("shell_environment" in word for word in codex_harness.command(in_terminal).argv)


@pytest.mark.parametrize("session", ["", "latest", f"{SESSION} ", f"{SESSION}\n", SESSION.upper()])
def test_an_invalid_session_id(session):
    """Codex would take it for a name, and open a new session for it."""
    with pytest.raises(UsageError, match="is not a valid session id"):
        codex_harness.command(LaunchSpec(session=session, resumes=True))


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_system_prompt_arrives_as_it_is(words):
    """The program reads the same words, whatever they contain."""
    given = settings(codex_harness.command(LaunchSpec(session="", instructions=words)).argv)
    assert value(given.get("developer_instructions", '""')) == words


def test_a_system_prompt_that_is_too_long():
    """The system would refuse to start it, with an unhelpful error."""
    with pytest.raises(ManifestError, match="too long for Codex"):
        codex_harness.command(LaunchSpec(session="", instructions="x" * 130_000))


def test_in_a_terminal():
    """A person can be asked for approvals, and the task is the last argument."""
    start = LaunchSpec(session="", interactive=True, prompt="/clear it")
    assert codex_harness.command(start).argv == ("codex", "--", "The task: /clear it")
    going_on = LaunchSpec(session=SESSION, resumes=True, interactive=True, prompt="Go on.")
    assert codex_harness.command(going_on).argv == ("codex", "resume", SESSION, "--", "Go on.")
    assert codex_harness.command(LaunchSpec(session="", interactive=True)).argv == ("codex",)


def test_hooks_of_a_launch():
    """Each of ours is told on the command line, with the hash that has Codex run it."""
    program = ("/a b/py", "-I", "it's.pyc")
    given = settings(
        codex_harness.command(LaunchSpec(session="", hook=program, scratch="/run")).argv
    )
    state = value(given.pop("hooks.state"))
    told = {name: value(text) for name, text in given.items() if name.startswith("hooks.")}
    places = {"SessionStart": 5, "SessionEnd": 1, "UserPromptSubmit": 1, "PreCompact": 1}
    assert {name.removeprefix("hooks."): len(entries) for name, entries in told.items()} == {
        **places,
        "PostToolUse": 1,
        "PreToolUse": 1,
    }
    assert told["hooks.SessionEnd"][0]["hooks"][0]["timeout"] == 3
    words = shlex.split(told["hooks.PostToolUse"][0]["hooks"][0]["command"])
    assert words == [*program, "codex", "PostToolUse", "||", "true"]
    assert len(state) == 10
    assert "/<session-flags>/config.toml:session_start:4:0" in state
    assert "/<session-flags>/config.toml:user_prompt_submit:0:0" in state


def test_the_hash_of_a_hook():
    """It equals the hash that the real program computed for this hook."""
    hook = {"type": "command", "command": "echo é $HOME", "timeout": 10}
    entry = {"matcher": "startup", "hooks": [hook]}
    assert codex_hooks.make_trust_state(
        {"SessionStart": [entry], "PostToolUse": [{"hooks": [hook]}]}, "f"
    ) == {
        "f:session_start:0:0": {
            "trusted_hash": "sha256:"
            "ee63af8c05e0b1874200aa82351edf92089940656eaa30e5edb8bc937422d120"
        },
        "f:post_tool_use:0:0": {
            "trusted_hash": "sha256:"
            "dfda8e27667bde829f450906f6ede45309915297eeb97ac7109cd69cfd48030d"
        },
    }


def test_the_primer_of_a_session():
    """It is JSON, so that no text can pass for another kind."""
    said = json.loads(codex_harness.render_hook_output("SessionStart", '["a", "é"]'))
    assert said == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": '["a", "é"]'}
    }


# Permissions

READ_ONLY = "--sandbox=read-only"
WRITES = ("--sandbox=workspace-write", "--add-dir=/drafts/trades")
NO_SHELL = ("--disable=shell_tool", "--disable=unified_exec")
NO_WEB = '--config=web_search="disabled"'


@pytest.mark.parametrize(
    ("allowed", "deny", "expected"),
    [
        (None, None, ()),
        (["Read", "Bash"], ["Bash"], (READ_ONLY, *NO_SHELL, NO_WEB)),
        (["Bash", "Write"], ["Bash"], (*WRITES, *NO_SHELL, NO_WEB)),
        ([], [], (READ_ONLY, *NO_SHELL, NO_WEB)),
        (None, ["Write(*)", "Bash(*)"], (READ_ONLY, *NO_SHELL)),
        (None, ["Write"], (READ_ONLY,)),
        (None, ["Bash"], NO_SHELL),
        (None, ["WebSearch"], (NO_WEB,)),
        (["Bash"], None, (*WRITES, NO_WEB)),
        (["Bash", "WebSearch"], ["Edit(**)"], (READ_ONLY,)),
        (["Write", "Edit"], None, (*WRITES, *NO_SHELL, NO_WEB)),
        (["Read", "Grep"], None, (READ_ONLY, *NO_SHELL, NO_WEB)),
        (["Read", ""], ["Bash"], (READ_ONLY, *NO_SHELL, NO_WEB)),
    ],
)
def test_permissions(allowed, deny, expected):
    """Denied tools are removed, and unlisted ones if there is a list; else the person decides."""
    persona = Persona(permissions=Permissions(allowed_tools=allowed, deny=deny))
    argv = codex_harness.command(
        LaunchSpec(session="", persona=persona, draft="/drafts/trades/relay.md")
    ).argv
    servers = tuple(word for word in argv if "hooks" in word)
    assert argv[5:-1] == servers + expected
    assert bool(servers) is (allowed is not None)


@pytest.mark.parametrize(
    ("allowed", "deny", "expected"),
    [
        (["Bash"], None, "--sandbox=danger-full-access"),
        (["Bash"], ["Write"], READ_ONLY),
        (["Read"], None, READ_ONLY),
    ],
)
def test_permissions_in_a_sandbox(allowed, deny, expected):
    """Codex cannot create its own sandbox there, and Rekindle's has the same folder."""
    persona = Persona(permissions=Permissions(allowed_tools=allowed, deny=deny))
    argv = codex_harness.command(
        LaunchSpec(session="", persona=persona, draft="/drafts/relay.md", is_sandboxed=True)
    ).argv
    assert [word for word in argv if word.startswith(("--sandbox", "--add-dir"))] == [expected]


def test_a_hook_that_refuses_the_tools_of_servers():
    """It is beside ours, trusted in the same way, and exits with the code that refuses a call."""
    persona = Persona(permissions=Permissions(allowed_tools=["Read"]))
    argv = codex_harness.command(LaunchSpec(session="", persona=persona, hook=("hook",))).argv
    found = settings(argv)
    _, entry = value(found["hooks.PreToolUse"])
    for name, is_server in (("mcp__a__b", True), ("read_mcp_resource", True), ("Bash", False)):
        assert bool(re.fullmatch(entry["matcher"], name)) is is_server
    shell = ["/bin/sh", "-c", entry["hooks"][0]["command"]]
    ran = subprocess.run(shell, capture_output=True, check=False)
    assert (ran.returncode, bool(ran.stderr)) == (2, True)
    assert {"hooks.SessionStart", "hooks.PostToolUse"} <= found.keys()
    assert any("pre_tool_use" in key for key in value(found["hooks.state"]))


@pytest.mark.parametrize(
    "rule", ["Bash(rm *)", "Write(src/**)", "Read", "mcp__x__y", "--danger", "Bash(*) ", "bash"]
)
def test_a_permission_that_cannot_be_kept(rule):
    """It is refused by its name: a permission that is not enforced must not be trusted."""
    persona = Persona(permissions=Permissions(deny=[rule]))
    with pytest.raises(UnenforceableError) as refused:
        codex_harness.command(LaunchSpec(session="", persona=persona))
    assert refused.value.rule == rule


# The stream


@given(st.binary())
def test_any_bytes_are_read(data):
    """Nothing that a program prints can raise."""
    assert isinstance(codex_harness.read_stream(data), tuple)


SMALL = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "\ud800x"])
VALUES = SMALL | st.lists(SMALL, max_size=3) | st.dictionaries(st.just("path"), SMALL)
ITEM = {
    "type": st.sampled_from(
        ["command_execution", "file_change", "web_search", "agent_message", "error"]
    )
    | VALUES,
    **dict.fromkeys(("id", "text", "command", "changes", "query", "tool"), VALUES),
}


@given(
    st.sampled_from(
        [
            "thread.started",
            "item.started",
            "item.completed",
            "turn.failed",
            "error",
            "turn.completed",
        ]
    ),
    VALUES | st.fixed_dictionaries(ITEM),
    VALUES | st.dictionaries(st.just("message"), VALUES),
    VALUES,
)
def test_any_fields_are_read(kind, item, error, other):
    """A line of a kind that we know, with fields of any kind, gives what can be written again."""
    seen = codex_harness.read_stream(
        line(type=kind, item=item, error=error, message=other, thread_id=other, usage=other)
    )
    assert msgspec.json.encode(seen)


@pytest.mark.parametrize("case", ["tool", "limit"])
def test_torn_lines_show_nothing(case):
    """A torn line gives nothing; whole lines are read."""
    for record in load(case).stream:
        whole = json.dumps(record).encode()
        assert all(codex_harness.read_stream(whole[:end]) == () for end in range(0, len(whole), 37))


@pytest.mark.parametrize(
    "hostile",
    [
        b'{"type":"turn.completed","x":' + b"[" * 100_000,
        b'{"type":"thread.started","thread_id":"../../etc"}',
        b'{"type":"item.completed","item":{"type":"error","message":"a warning"}}',
        b'["type"]',
        b"null",
    ],
    ids=["nested", "no session", "warning", "list", "null"],
)
def test_lines_that_show_nothing(hostile):
    """Hostile lines and mere warnings are ignored."""
    assert codex_harness.read_stream(hostile) == ()


def test_a_patch_is_described_by_its_files():
    """Its subject is the list of files that it changes."""
    item = {"type": "file_change", "id": "item_1", "changes": [{"path": "a"}, {"path": "b"}]}
    assert codex_harness.read_stream(line(type="item.started", item=item)) == (
        ToolCallStarted("file_change", "item_1", "a b"),
    )


# Usage


def test_usage_of_a_rollout():
    """The last request counts, with its answer, in the window that the program knows."""
    used = codex_harness.usage(load("tool").tail, {})
    assert (used.tokens, used.window, used.known) == (3235, 258_400, "reported")
    assert used.model == "gpt-5.5"


def test_usage_of_a_killed_session():
    """The request whose tool was running is known already."""
    used = codex_harness.usage(load("sigkill").tail, {})
    assert (used.tokens, used.window) == (110, 258_400)


def test_usage_after_a_compaction():
    """A conversation that has just been summarised is as large as the program says, or unknown."""
    lines = load("compaction").tail.splitlines(keepends=True)
    place = next(number for number, each in enumerate(lines) if b'"compacted"' in each)
    assert codex_harness.usage(b"".join(lines[: place - 1]), {}).tokens in {110, 90_010}
    assert codex_harness.usage(b"".join(lines[: place + 1]), {}) is None
    after = [
        codex_harness.usage(b"".join(lines[:end]), {}) for end in range(place + 1, len(lines) + 1)
    ]
    tokens = list(dict.fromkeys(one.tokens for one in after if one))
    assert tokens == [6793, 3235]


def test_usage_without_a_window():
    """If the end of a rollout does not name the window, a learnt size counts, or none."""
    tail = line(type="token_usage_record", payload={"usage": {"total_tokens": 7}})
    named = tail + b"\n" + line(type="turn_context", payload={"model": "m"})
    assert codex_harness.usage(tail, {"m": 10}).known == "unknown"
    used = codex_harness.usage(named, {"m": 10})
    assert (used.tokens, used.window, used.known) == (7, 10, "reported")


@given(st.binary(), st.integers(0, 2000), st.integers(0, 2000))
def test_any_tail_is_read(noise, start, stop):
    """A rollout that is torn anywhere, with anything in it, gives a usage or none."""
    good, odd = ({"info": {"last_token_usage": {"total_tokens": each}}} for each in (500, "many"))
    counts = [
        line(type="event_msg", payload={"type": "token_count", **each}) for each in (good, odd)
    ]
    used = codex_harness.usage(b"\n".join([*counts, noise, *counts])[start:stop], {})
    assert used is None or used.tokens == 500


# Cut rollouts


def test_a_rollout_that_was_cut_before_its_prompt():
    """Wherever it was cut, the prompt counts only if its whole line is there."""
    tape = load("tool")
    asked = next(told["turn_id"] for event, told in tape.hooks if event == "UserPromptSubmit")
    place = tape.tail.index(b'"UserMessage"')
    end = tape.tail.index(b"\n", place)
    for at in (*range(0, len(tape.tail), 101), place, end - 1, end, len(tape.tail)):
        assert codex_harness.has_prompt(tape.tail[:at].split(b"\n"), asked) == (at >= end), at
    assert not codex_harness.has_prompt(tape.tail.split(b"\n"), OTHER)


def test_a_sub_agent_is_asked_by_its_agent():
    """Its prompt is not taken for the prompt of its session."""
    told = {"session_id": SESSION, "turn_id": "t", "prompt": "look", "agent_id": "a"}
    when = datetime.now(UTC)
    for fields, expected in ((told, False), ({**told, "agent_id": None}, True)):
        payload = json.dumps(fields).encode()
        hooked = HookRecord(harness="codex", event="UserPromptSubmit", ts=when, payload=payload)
        assert (codex_harness.read_hook(hooked) is not None) == expected


# Ends


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({"stopped": True, "code": -15}, "interrupted"),
        ({"stopped": True, "finished": failed("unexpected status 503")}, "interrupted"),
        ({"code": -2}, "interrupted"),
        ({"code": 143}, "interrupted"),
        ({"code": -11}, "crash"),
        ({"code": 101, "errors": "thread 'main' panicked"}, "crash"),
        ({"code": 0}, "crash"),
        ({"code": 1}, "crash"),
        ({"code": 1, "opened": SESSION}, "interrupted"),
        ({"code": 1, "opened": SESSION, "errors": "Reading prompt from stdin...\n"}, "interrupted"),
        ({"code": 1, "opened": SESSION, "errors": "it broke"}, "crash"),
        ({"code": -9, "finished": FinalReport("", ok=True)}, "clean"),
        ({"code": -9, "finished": failed("it was tried again")}, "crash"),
        ({"resumes": True, "opened": OTHER, "finished": FinalReport("", ok=True)}, "resume-failed"),
        ({"resumes": True, "errors": "Error: thread/resume failed: it is odd"}, "resume-failed"),
        ({"opened": OTHER, "code": 0, "finished": FinalReport("", ok=True)}, "clean"),
    ],
)
def test_ends(facts, kind):
    """The precedence is: the operator, the wrong session, a whole turn, a signal, the words."""
    assert codex_harness.classify(ended(**facts)).kind == kind


def test_the_telling_line_of_a_trace():
    """A known sentence anywhere in a long trace is the reported one."""
    trace = "ERROR codex_core: it broke\n" * 50
    ending = codex_harness.classify(
        ended(errors=f"{trace}You\u2019ve hit your usage limit.\n{trace}")
    )
    assert (ending.kind, ending.hint) == ("limit", "You've hit your usage limit.")
    assert codex_harness.classify(ended(errors=trace)).words.startswith(
        "failed with exit code 1: ERROR"
    )


@pytest.mark.parametrize(
    ("errors", "kind"),
    [
        ("ERROR codex_core: connection timed out\nYou've hit your usage limit.\n", "limit"),
        ("ERROR codex_core: connection timed out\nError: config.toml: unknown key\n", "crash"),
        (
            "ERROR codex_core: rate limit reached\nthread 'main' panicked at x.rs:1\nnote: y",
            "crash",
        ),
        (
            "ERROR codex_core: it broke\nError: it broke\n\nCaused by:\n  error sending request",
            "network",
        ),
    ],
)
def test_an_earlier_complaint_does_not_explain_the_end(errors, kind):
    """The last message counts; if it gave itself up, nothing before that does."""
    assert codex_harness.classify(ended(opened=SESSION, errors=errors)).kind == kind


# The set of sentences that others have seen


MESSAGES = Path(__file__).parents[4].parent / "shared" / "facts" / "limit-messages/messages.jsonl"

KINDS = {
    "quota": {"limit"},
    "rate": {"limit", "overload"},
    "overload": {"overload"},
    "network": {"network"},
    "auth": {"auth"},
    "billing": {"billing", "limit"},
    "context_full": {"context-full"},
    "resume_failed": {"resume-failed"},
    "fatal": {"crash"},
    "other": {"crash", "budget"},
}


def messages() -> list[dict]:
    if not MESSAGES.exists():
        pytest.skip(f"{MESSAGES} is not there")
    rows = [json.loads(row) for row in MESSAGES.read_text().splitlines()]
    return [row for row in rows if row["cli"] == "codex"]


def test_sentences_that_stop_a_run():
    """Each of them ends a run as what it is, said on the stream or on standard error."""
    stops = [row for row in messages() if row["stop"]]
    assert len(stops) > 50
    for row in stops:
        told = line(type="turn.failed", error={"message": row["text"]})
        (finished,) = codex_harness.read_stream(told)
        if isinstance(finished, FinalReport):  # without its own retries
            kind = codex_harness.classify(ended(opened=SESSION, finished=finished)).kind
            assert kind in KINDS[row["class"]], row["text"]


def test_sentences_that_stop_nothing():
    """Warnings, panels and an agent that talks about limits end no run that ended well."""
    for row in messages():
        if row["stop"] is False:
            finished = FinalReport("", ok=True, text=row["text"])
            assert (
                codex_harness.classify(ended(finished=finished, errors=row["text"])).kind == "clean"
            )
