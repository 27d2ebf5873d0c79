"""Gemini CLI is parsed on recordings of the real one and on bytes that it should never send."""

import json
import re
import shlex
import tomllib
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from recordings.gemini_cases import GEMINI
from recordings.tape import Tape, as_bytes, traces
from rekindle.documents.events import (
    Heartbeat,
    PromptSubmitted,
    SessionEnded,
    SessionStarted,
)
from rekindle.documents.hooks.hook_record import HookRecord
from rekindle.documents.launches.launch_types import (
    AssistantText,
    FinalReport,
    LaunchExit,
    LaunchSpec,
    ProcessResult,
    SessionOpened,
    SpokenItem,
    ToolCallFinished,
    ToolCallStarted,
    WarningReport,
    WindowUsage,
)
from rekindle.documents.manifest import Permissions, Persona
from rekindle.errors import DocumentError, UnenforceableError, UsageError
from rekindle.harnesses.gemini import gemini_harness
from rekindle.harnesses.gemini.gemini_policy import (
    TOOLS,
    render_policy,
)
from rekindle.hook import session_primer
from rekindle.policy.exits import usage_limits
from rekindle.policy.projection.fold import fold_events
from rekindle.policy.projection.projection import Projection

SESSION = "6f1c2a34-0000-4000-8000-00000000abcd"
OTHER = "6f1c2a34-0000-4000-8000-00000000dcba"
NOW = datetime(2026, 4, 9, tzinfo=UTC)
WINDOW = 1_048_576
TEXT = ["SessionOpened", "AssistantText", "AssistantText", "FinalReport"]
TOOL = ["SessionOpened", "ToolCallStarted", "AssistantText", "AssistantText", "FinalReport"]
REFUSED = ["SessionOpened", "FinalReport"]

ENDS = {
    "text": "clean",
    "asked": "clean",
    "subagent": "clean",
    "tool": "clean",
    "failing-tool": "clean",
    "parallel": "clean",
    "compaction": "clean",
    "resume": "clean",
    "resume-after-sigkill": "clean",
    "resume-truncated": "clean",
    "resume-in-use": "clean",
    "cut-stream": "network",
    "loop": "handoff",
    "refused-400": "auth",
    "refused-401": "auth",
    "refused-402": "billing",
    "refused-413": "context-full",
    "refused-429": "limit",
    "refused-500": "overload",
    "refused-503": "overload",
    "no-billing": "billing",
    "no-credits": "billing",
    "limit": "limit",
    "limit-of-a-minute": "limit",
    "no-network": "network",
    "no-key": "auth",
    "too-long": "context-full",
    "too-long-later": "context-full",
    "max-turns": "budget",
    "sigint": "interrupted",
    "sigint-while-speaking": "interrupted",
    "sigterm": "interrupted",
    "sigkill": "crash",
    "session-id-taken": "crash",
    "resume-after-refusal": "resume-failed",
    "resume-missing": "resume-failed",
    "resume-corrupt": "resume-failed",
    "resume-foreign": "resume-failed",
}


def tape(case: str) -> Tape:
    return Tape.read(GEMINI.kept / f"{case}.jsonl")


def seen(case: str) -> list:
    return [one for line in tape(case).stream for one in gemini_harness.read_stream(as_bytes(line))]


def ending(case: str) -> LaunchExit:
    run, shown = tape(case), seen(case)
    return gemini_harness.classify(
        ProcessResult(
            code=run.code,
            session=run.session,
            resumes=run.resumes,
            opened=next((one.session for one in shown if isinstance(one, SessionOpened)), ""),
            finished=next((one for one in shown if isinstance(one, FinalReport)), None),
            errors=run.stderr,
            last=tuple(one for one in shown if isinstance(one, SpokenItem)),
        )
    )


def ended(**facts) -> ProcessResult:
    return ProcessResult(**{"code": 1, "session": SESSION, **facts})


def hooked(word: str, payload: bytes, **facts) -> HookRecord:
    return HookRecord(harness="gemini", event=word, ts=NOW, payload=payload, **facts)


def words() -> dict[str, str]:
    """Return the word with which our hook gets each event."""
    made = gemini_harness.hooks(("hook",), supervised=True)
    return {event: shlex.split(made[event][0]["hooks"][0]["command"])[2] for event in made}


# Recordings


def test_every_recording_has_its_expectation():
    """A case that is recorded is looked at, and the other way round."""
    assert {path.stem for path in GEMINI.kept.glob("*.jsonl")} == set(ENDS)


@pytest.mark.parametrize("case", ENDS)
def test_a_recording(case):
    """Each launch of the real program ends as what it was; what it showed, the contract has."""
    found = ending(case)
    assert found.kind == ENDS[case]
    assert 0 < len(found.words) <= 240
    assert "\n" not in found.words


@pytest.mark.parametrize("case", ENDS)
def test_recordings_tell_nothing_of_the_machine(case):
    """No path of the machine that recorded them, and no key."""
    text = (GEMINI.kept / f"{case}.jsonl").read_text()
    assert traces(text) == []
    assert not re.search(r"sk-\w|Bearer", text)


def test_a_tool_call_in_detail():
    """The session, the call with what it is about, the words in pieces, the account of it."""
    opened, called, returned, *said, finished = seen("tool")
    assert opened == SessionOpened(tape("tool").session, "gemini-2.5-flash", window=1_048_576)
    given = {"command": "echo from the tool"}
    assert called == ToolCallStarted("run_shell_command", called.call, "echo from the tool", given)
    assert returned == ToolCallFinished(called.call)
    assert said == [AssistantText("all "), AssistantText("done")]
    assert (finished.ok, finished.tokens) == (True, 4475)


@pytest.mark.parametrize(
    ("case", "wait"), [("limit", 10_800), ("limit-of-a-minute", 30), ("refused-429", None)]
)
def test_when_a_limit_ends(case, wait):
    """Told in its sentence, or in the trace below it, and never guessed."""
    until = usage_limits.parse_reset_time(ending(case).hint, now=NOW, zone=UTC)
    if wait is None:
        assert until is None
    else:
        assert NOW + timedelta(seconds=wait) <= until <= NOW + timedelta(seconds=wait + 60)


def test_hook_payloads_become_events():
    """Each payload is read as the event of its hook, for its session."""
    facts = {
        "SessionStart": SessionStarted,
        "BeforeAgent": PromptSubmitted,
        "AfterTool": Heartbeat,
        "SessionEnd": SessionEnded,
    }
    assert set(words()) == {*facts, "BeforeModel"}  # the event that stops it; it is not recorded
    read = set()
    for case in ENDS:
        for event, payload in tape(case).hooks:
            if event in facts:
                fact = gemini_harness.read_hook(
                    hooked(words()[event], json.dumps(payload).encode())
                )
                assert type(fact) is facts[event]
                assert fact.session == payload["session_id"]
                read.add(event)
    assert read == set(facts)


def test_a_call_without_an_id_counts_once():
    """Two hooks are told the same in the same bytes; another call is another."""
    payload = b'{"session_id":"%s","tool_name":"x","timestamp":"%s"}'
    one, same, other = (
        gemini_harness.read_hook(hooked("PostToolUse", payload % (SESSION.encode(), when))).call
        for when in (b"1", b"1", b"2")
    )
    assert one == same != other
    undated = b'{"session_id":"%s","tool_name":"x"}' % SESSION.encode()
    assert gemini_harness.read_hook(hooked("PostToolUse", undated)).call == ""


def test_a_payload_that_was_cut():
    """The session, the tool and the kind of a large tool call are still known."""
    head = b'{"session_id":"%s","timestamp":"1","tool_name":"x","tool_input":{"a":"' % (
        SESSION.encode()
    )
    fact = gemini_harness.read_hook(hooked("PostToolUse", head + b"aaaa", cut=9_000_000))
    assert (fact.session, fact.tool, len(fact.call)) == (SESSION, "x", 16)


def test_a_payload_without_a_session():
    """It is refused by name, and not made up."""
    with pytest.raises(DocumentError, match="does not name a session"):
        gemini_harness.read_hook(hooked("PostToolUse", b"{}"))


# Starting


def test_a_fresh_session():
    """The whole command, with nothing in it that was not asked for."""
    command = gemini_harness.command(
        LaunchSpec(session=SESSION, hook=("hook",), scratch="/scratch")
    )
    assert command.argv == (
        *("gemini", "--output-format=stream-json", "--skip-trust"),
        f"--session-id={SESSION}",
    )
    assert command.environment == {"GEMINI_CLI_NO_RELAUNCH": "true"}
    assert command.files == {}


def test_a_session_that_resumes_with_a_persona():
    """Its rules are in a file of the launch, and its prompt replaces the CLI's."""
    persona = Persona(
        permissions=Permissions(allowed_tools=["Read"]), system_prompt_file="/p/persona.md"
    )
    start = LaunchSpec(
        session=SESSION, resumes=True, persona=persona, program=("nice", "gemini"), scratch="/s"
    )
    command = gemini_harness.command(start)
    assert command.argv[:2] == ("nice", "gemini")
    assert command.argv[4:] == (f"--resume={SESSION}", "--policy=/s/gemini-policy.toml")
    assert list(command.files) == ["gemini-policy.toml"]
    assert command.environment["GEMINI_SYSTEM_MD"] == "/p/persona.md"


def test_in_a_terminal():
    """No stream; the task is an option of its own."""
    start = LaunchSpec(session=SESSION, interactive=True, prompt="-v is next")
    named, task = f"--session-id={SESSION}", "--prompt-interactive=The task: -v is next"
    assert gemini_harness.command(start).argv == ("gemini", "--skip-trust", named, task)
    going_on = LaunchSpec(session=SESSION, resumes=True, interactive=True)
    assert gemini_harness.command(going_on).argv == (
        "gemini",
        "--skip-trust",
        f"--resume={SESSION}",
    )


@pytest.mark.parametrize("session", ["", "latest", "1", f"{SESSION}\n", SESSION.upper()])
def test_an_invalid_session_id(session):
    """`latest`, which may be any session, is refused too."""
    with pytest.raises(UsageError, match="is not a valid session id"):
        gemini_harness.command(LaunchSpec(session=session))


def test_hooks_are_commands_of_a_shell():
    """Spaces and quotes in a path stay in it; the time limit is in milliseconds."""
    made = gemini_harness.hooks(("/a b/py", "it's.pyc"), supervised=False, folder="/$HOME/x")
    for (entry,) in made.values():
        (one,) = entry["hooks"]
        parts = shlex.split(one["command"])
        assert parts[:3] == ["/a b/py", "it's.pyc", "gemini"]
        assert parts[4:] == ["/$HOME/x", "||", "true"]
        assert one["timeout"] == 10_000


def test_a_session_is_told_at_its_first_prompt_only():
    """At its start, what a hook says would cost it its prompts when it is resumed."""
    assert {word for word in words().values() if session_primer.needs_primer(word, "")} == {
        "BeforeAgent"
    }
    told = json.loads(gemini_harness.render_hook_output("BeforeAgent", 'say "hello"\n'))[
        "hookSpecificOutput"
    ]
    assert told == {"hookEventName": "BeforeAgent", "additionalContext": 'say "hello"\n'}
    assert gemini_harness.render_hook_output("SessionStart", "hello") == ""


# Permissions of a persona


def rules(allowed: list[str] | None = None, deny: list[str] | None = None) -> list[dict]:
    return tomllib.loads(render_policy(Permissions(allowed_tools=allowed, deny=deny))).get(
        "rule", []
    )


def test_a_read_only_persona():
    """Only its allowed tools are offered, whatever the user's own settings allow."""
    found = rules(["Read", "grep_search"])
    allowed = {rule["toolName"] for rule in found if rule["decision"] == "allow"}
    assert allowed == {"read_file", "read_many_files", "grep_search"}
    (denied,) = [rule for rule in found if rule["decision"] == "deny"]
    assert denied["toolName"] == "*"
    assert 900 < denied["priority"] < min(r["priority"] for r in found if r is not denied)


def test_denials_come_first():
    """A tool that is both allowed and denied is denied; denying alone allows what it did."""
    (shell,) = rules(deny=["Bash"])
    assert shell == {"toolName": "run_shell_command", "decision": "deny", "priority": 999}
    found = {rule["decision"]: rule["priority"] for rule in rules(["Bash"], ["Bash"])[:2]}
    assert found["deny"] > found["allow"]


def test_no_permissions_no_rules():
    """Nothing said is nothing changed; an empty list of what is allowed allows nothing."""
    assert (
        render_policy(None)
        == render_policy(Permissions())
        == render_policy(Permissions(deny=[]))
        == ""
    )
    assert [rule["decision"] for rule in rules([])] == ["deny"]


@pytest.mark.parametrize(
    ("pattern", "prefix"),
    [("Bash(git log:*)", "git log"), ("run_shell_command(npm *)", "npm"), ('Bash(a"b:*)', 'a"b')],
)
def test_a_command_by_its_prefix(pattern, prefix):
    """The notation of other CLIs is accepted; quotes stay in it."""
    assert rules([pattern])[0]["commandPrefix"] == prefix


def test_only_an_agent_with_the_whole_shell_may_redirect():
    """Without this, the CLI refuses `make >log`; after a prefix, it could write any file."""
    for pattern in ("Bash", "Bash(*)", "run_shell_command", "*"):
        assert rules([pattern])[0]["allowRedirection"] is True
    for pattern in ("Bash(git log:*)", "Read", "mcp_web_*"):
        assert not any("allowRedirection" in rule for rule in rules([pattern]))
    assert not any("allowRedirection" in rule for rule in rules(deny=["Bash"]))


@pytest.mark.parametrize("pattern", ["Bash(touch:*)", "run_shell_command(rm -rf *)"])
def test_no_command_is_denied_by_its_beginning(pattern):
    """It would be called by another name: what cannot be held is refused."""
    with pytest.raises(UnenforceableError, match=re.escape(repr(pattern))):
        render_policy(Permissions(allowed_tools=["Bash"], deny=[pattern]))


@pytest.mark.parametrize("pattern", [*sorted(TOOLS), "*", "mcp_*", "mcp_web_*", "mcp_*_search"])
def test_tools_by_name(pattern):
    """All that it has, and those of servers."""
    assert rules([pattern])[0]["toolName"] == pattern


@pytest.mark.parametrize("rest", ["", "()", "(*)", "(**)"])
@pytest.mark.parametrize(
    ("name", "tools"),
    [
        ("Bash", {"run_shell_command"}),
        ("Write", {"write_file"}),
        *((name, {"replace"}) for name in ("Edit", "MultiEdit", "NotebookEdit")),
        ("WebSearch", {"google_web_search"}),
        ("WebFetch", {"web_fetch"}),
        ("Read", {"read_file", "read_many_files"}),
        ("Grep", {"grep_search"}),
        ("Glob", {"glob"}),
        ("LS", {"list_directory"}),
        ("replace", {"replace"}),
    ],
)
def test_whole_tools_by_the_names_of_other_clis(name, tools, rest):
    """A persona that was written for another CLI says the same here."""
    made = rules([name + rest, ""], [name + rest])
    for decision in ("allow", "deny"):
        found = [rule for rule in made if rule["decision"] == decision and rule["toolName"] != "*"]
        assert {rule["toolName"] for rule in found} == tools
        assert not any("commandPrefix" in rule for rule in found)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "Read(src/**)",
            "Edit(./a)",
            "Bash(npm test)",
            "Bash(git * main:*)",
            "Bash(:*)",
            "*(*)",
            "mcp_web_*(*)",
        ),
        *(
            "read_flie",
            "read_flie(*)",
            "mcp__web__search",
            "mcp_a*b",
            "Bash(git:*)\n",
            "Bash(é:*)",
            "-x",
        ),
    ],
)
def test_what_cannot_be_enforced_is_refused(pattern):
    """The error names it: a rule without effect would be trusted."""
    for permissions in (Permissions(allowed_tools=[pattern]), Permissions(deny=[pattern])):
        with pytest.raises(UnenforceableError, match=re.escape(repr(pattern))):
            render_policy(permissions)


@given(st.text())
def test_any_pattern(pattern):
    """Any pattern in the manifest is refused, or becomes exactly one rule."""
    try:
        made = render_policy(Permissions(allowed_tools=[f"Bash({pattern}:*)"]))
    except UnenforceableError:
        return
    rule, _ = tomllib.loads(made)["rule"]
    assert rule["commandPrefix"] == pattern


# The stream, the transcript, the end


@given(st.binary())
def test_any_bytes_are_read(data):
    """Nothing that a program prints or keeps can raise."""
    assert isinstance(gemini_harness.read_stream(data), tuple)
    assert gemini_harness.usage(b'{"tokens"' + data, {}) is None


SMALL = st.none() | st.booleans() | st.integers() | st.sampled_from(["", "x", "\ud800x"])
VALUES = SMALL | st.lists(SMALL, max_size=2) | st.dictionaries(st.sampled_from("ab"), SMALL)
NAMES = ("session_id", "model", "role", "content", "tool_name", "tool_id", "parameters", "error")


@given(
    st.sampled_from(["init", "message", "tool_use", "result", "error"]),
    st.dictionaries(st.sampled_from(NAMES), VALUES),
)
def test_any_fields_are_read(kind, told):
    """A field that is missing, or of another kind, is nothing rather than an error."""
    for one in gemini_harness.read_stream(json.dumps({**told, "type": kind}).encode()):
        assert isinstance(
            one, SessionOpened | AssistantText | ToolCallStarted | WarningReport | FinalReport
        )
        json.dumps(repr(one)).encode()


def test_how_full_the_window_is():
    """The last turn counts; the window is the CLI's own number, or what was learnt, or unknown."""
    assert gemini_harness.usage(tape("tool").tail, {}) == WindowUsage(
        3230, WINDOW, "estimated", "gemini-2.5-flash"
    )
    learnt = gemini_harness.usage(tape("tool").tail, {"gemini-2.5-flash": 5})
    assert (learnt.window, learnt.known) == (5, "reported")
    other = b'{"type":"gemini","tokens":{"input":7},"model":"llama"}'
    assert gemini_harness.usage(other, {}) == WindowUsage(7, None, "unknown", "llama")
    assert gemini_harness.usage(b"", {}) is None


@pytest.mark.parametrize(
    ("facts", "kind", "told"),
    [
        ({"code": 0, "stopped": True}, "interrupted", "stopped by the operator"),
        ({"code": 0, "opened": SESSION}, "interrupted", "by SIGINT or SIGTERM"),
        ({"code": 0}, "crash", "exited without a result"),
        ({"code": -1}, "interrupted", "ended by SIGHUP"),
        ({"code": -11}, "crash", "ended by SIGSEGV"),
        ({"code": 137}, "crash", "ended by SIGKILL"),
        ({"code": 173}, "limit", "a limit was reached"),
        ({"code": 247}, "overload", "the API is unavailable"),
        ({"code": 144}, "crash", "failed with exit code 144"),
        ({"code": 144, "resumes": True, "opened": SESSION}, "resume-failed", "the API refuses"),
        ({"code": 0, "resumes": True, "opened": OTHER}, "resume-failed", "another session"),
        ({"code": 41}, "auth", "a person must log in"),
        ({"code": 53}, "budget", "its turns"),
        ({"errors": "YOLO mode is enabled.\n    at x (y)\n}\n"}, "crash", "exit code 1"),
        (
            {"errors": '{\n"code": 429,\n"message": "No capacity available for model x"\n}'},
            "overload",
            "No capacity available",
        ),
        ({"errors": "Warning: x\nError: fetch failed\nbye\n"}, "network", "Error: fetch failed"),
    ],
)
def test_an_end(facts, kind, told):
    """Its own numbers, the statuses of HTTP, the signals, and its words where they tell more."""
    found = gemini_harness.classify(ended(**facts))
    assert found.kind == kind
    assert told in found.words


@pytest.mark.parametrize(
    ("finished", "last", "kind"),
    [
        (True, [WarningReport("Loop detected, stopping execution")], "handoff"),
        (True, [WarningReport("Maximum session turns exceeded")], "budget"),
        (True, [WarningReport("Agent execution blocked: not here")], "crash"),
        # A hook that wants more of it lets it go on.
        (True, [WarningReport("Agent execution blocked: test it"), AssistantText("done")], "clean"),
        (
            True,
            [WarningReport("Loop detected, stopping execution"), ToolCallStarted("a", "b")],
            "clean",
        ),
        (True, [WarningReport("Something was slow")], "clean"),
        (True, [AssistantText("Loop detected, stopping execution")], "clean"),
        (False, [WarningReport("The model is overloaded")], "overload"),
    ],
)
def test_a_success_that_is_none(finished, last, kind):
    """It stopped itself, or was stopped, and says so just before it speaks of a success."""
    told = FinalReport("", ok=finished)
    found = gemini_harness.classify(ended(code=0, opened=SESSION, finished=told, last=tuple(last)))
    assert found.kind == kind
    assert kind == "clean" or last[-1].text in found.words


@pytest.mark.parametrize(
    "text",
    [
        *("[API Error: terminated]", "[API Error: exception TypeError: terminated]"),
        *("[API Error: Premature close]", "[API Error: other side closed]"),
    ],
)
def test_a_connection_that_was_cut(text):
    """Nothing crashed: it is tried again as after any other trouble of the network."""
    told = FinalReport("", ok=False, text=text)
    assert gemini_harness.classify(ended(opened=SESSION, finished=told)).kind == "network"


def test_an_agent_that_talks_about_limits():
    """The words are read only if a run has failed."""
    finished = FinalReport("", ok=True)
    found = gemini_harness.classify(ended(code=0, finished=finished, errors="quota exceeded, 429"))
    assert found.kind == "clean"


def test_a_resumed_session_is_kept_in_its_first_file():
    """The file that its hook names then has the minute of the second start, and little in it."""
    path = f"/g/chats/session-2026-11-15T22-20-{SESSION[:8]}.jsonl"
    told = {"session_id": SESSION, "transcript_path": path}
    payload = json.dumps(told).encode()
    begun = gemini_harness.read_hook(hooked("SessionStart", payload, source="startup"))
    again = gemini_harness.read_hook(hooked("SessionStart", payload, source="resume"))
    assert (begun.transcript, again.transcript) == (told["transcript_path"], "")
    known = fold_events(Projection("a"), [replace(begun, seq=1), replace(again, seq=2)])
    assert known.lives[SESSION].transcript == told["transcript_path"]
    assert known.lives[SESSION].started_seq == 2


DRAFT = "/p/.rekindle/drafts/trades/relay.md"


@pytest.mark.parametrize(
    ("path", "decision"),
    [
        (DRAFT, "allow"),
        ("/p/rekindle.yaml", "deny"),
        ("rekindle.yaml", "deny"),
        ("/p/src/../rekindle.yaml", "deny"),
        ("/p/.rekindle/agents/trades/ops.jsonl", "deny"),
        (".rekindle/x", "deny"),
        (f"{DRAFT}/../../x", "deny"),
        ("/u/.local/state/rekindle/programs/x", "deny"),
        ('/p/a"/../.rekindle/x', "deny"),
        ("/p/src/rekindle/main.py", ""),
        ("/p/notes.md", ""),
        ("/p/bin/git", "deny"),
        ("bin/git", "deny"),
        ("./bin/git", "deny"),
        ("././bin/git", "deny"),
        ("../p/bin/git", "deny"),
        ("src/../bin/git", "deny"),
        ("/p//bin/git", "deny"),
        ("/p/src/bin/git", ""),
        ("src/bin/git", ""),
        ("./src/.x/binary", ""),
    ],
)
def test_paths_that_no_file_tool_may_write(path, decision):
    """The test matches as its policy engine does: JSON between NULs, the highest rule first."""
    protected = ("/p/rekindle.yaml", "/p/.rekindle", "/u/.local/state/rekindle", "/p/bin")
    start = LaunchSpec(
        session=SESSION, scratch="/scratch", draft=DRAFT, protected=protected, folder="/p"
    )
    made = gemini_harness.command(start)
    assert f"--admin-policy=/scratch/{gemini_harness.PROTECTION_FILE}" in made.argv
    rules = tomllib.loads(made.files[gemini_harness.PROTECTION_FILE])["rule"]
    assert {rule["toolName"] for rule in rules} == {"write_file", "replace"}
    told = f'{{\0"content":"see /p/rekindle.yaml"\0,\0"file_path":{json.dumps(path)}\0}}'
    ordered = sorted(rules, key=lambda rule: -rule["priority"])
    found = [rule["decision"] for rule in ordered if re.search(rule["argsPattern"], told)]
    assert (found or [""])[0] == decision
