"""Calls that a CLI refused because nothing permits them, as each CLI reports them."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from rekindle.documents.launches.launch_types import (
    FinalReport,
    RefusedCall,
    ToolCallFinished,
    ToolCallStarted,
)
from rekindle.documents.manifest import Permissions, Persona
from rekindle.flows.launches.process_output import ProcessOutput
from rekindle.flows.launches.refused_calls import (
    RefusedCalls,
    find_refused_calls,
)
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness
from rekindle.harnesses.gemini import gemini_harness
from rekindle.policy.redact.redaction import Redaction
from rekindle.thresholds.supervision import REFUSED_KEPT
from rekindle.thresholds.texts import ABOUT_CHARACTERS


def line(**record):
    return json.dumps(record).encode()


def test_claude_code_lists_them_in_its_last_report():
    given = {"file_path": "/p/parser.py", "content": "x"}
    denial = {"tool_name": "Write", "tool_use_id": "toolu_1", "tool_input": given}
    denials = [denial, "rubbish", {"tool_name": 7}]
    *refused, finished = claude_harness.read_stream(line(type="result", permission_denials=denials))
    assert refused[0] == RefusedCall("Write", "/p/parser.py", given, "toolu_1")
    assert [one.tool for one in refused[1:]] == ["", ""]
    assert isinstance(finished, FinalReport)


@pytest.mark.parametrize(
    ("result", "is_refused"),
    [
        ("Claude requested permissions to write to /p/x, but you haven't granted it yet.", True),
        ("This command requires approval", True),
        ("sed command requires approval (contains potentially dangerous operations)", True),
        (
            "touch in '/p/x' needs approval. The path is inside the working directories for it.",
            True,
        ),
        ("Permission to use Bash with command touch x has been denied.", True),
        (
            "Error: No such tool available: Bash. Bash is disabled for this session.",
            True,
        ),
        ("<tool_use_error>Error: No such tool available: Brew</tool_use_error>", False),
        ("Exit code 1\nThis command requires approval", False),
    ],
)
def test_claude_code_reports_them_while_it_works(result, is_refused):
    """So that they are not shown as calls that were made."""
    block = {"type": "tool_result", "tool_use_id": "c", "is_error": True, "content": result}
    seen = claude_harness.read_stream(line(type="user", message={"content": [block]}))
    refused = (ToolCallFinished("c", refused=True), RefusedCall(call="c"))
    assert seen == (refused if is_refused else (ToolCallFinished("c"),))


@pytest.mark.parametrize(
    ("kind", "message", "is_refused"),
    [
        ("tool_not_registered", 'Tool "run_shell_command" not found. Did you mean', True),
        ("tool_not_registered", 'Tool "mcp_git_push" not found.', True),
        ("tool_not_registered", 'Tool "make_coffee" not found.', False),
        ("policy_violation", "denied", True),
        ("invalid_tool_params", "no such file", False),
    ],
)
def test_gemini_reports_them_as_results_of_a_call(kind, message, is_refused):
    seen = gemini_harness.read_stream(
        line(type="tool_result", tool_id="c", error={"type": kind, "message": message})
    )
    refused = (ToolCallFinished("c", refused=True), RefusedCall(call="c"))
    assert seen == (refused if is_refused else (ToolCallFinished("c"),))


@pytest.mark.parametrize(
    ("output", "is_refused"),
    [
        ("approval policy is Never; reject command — you cannot ask for escalation", True),
        ("patch rejected: rejected by user approval settings", True),
        ("Process exited with code 1\nOutput:\ntouch: 'made': Read-only file system\n", True),
        ("Process exited with code 0\nOutput:\nRead-only file system\n", False),
        ("Process exited with code 1\nOutput:\nno such file\n", False),
    ],
)
def test_codex_has_them_in_its_rollout(output, is_refused):
    arguments = json.dumps({"cmd": "touch made"})
    call = {"type": "function_call", "name": "exec_command", "call_id": "c", "arguments": arguments}
    given = {"type": "function_call_output", "call_id": "c", "output": output}
    lines = [
        b"rubbish _call",
        line(type="response_item", payload=call),
        line(type="response_item", payload=given),
        line(type="response_item", payload=given | {"call_id": "of another part"}),
    ]
    permission = "Write" if "Read-only" in output else "Bash"
    refused = RefusedCall("exec_command", "touch made", {"cmd": "touch made"}, "c", permission)
    assert list(codex_harness.refused_calls(lines)) == ([refused] if is_refused else [])


def test_a_refusal_that_names_only_its_call_is_completed():
    watched = ProcessOutput()
    watched.take(ToolCallStarted("write_file", "c", "a.py", {"file_path": "a.py"}), 0.0)
    watched.take(RefusedCall(call="c"), 0.0)
    watched.take(RefusedCall(call="never shown"), 0.0)
    assert watched.refused_calls == [RefusedCall("write_file", "a.py", {"file_path": "a.py"}, "c")]
    for number in range(2 * REFUSED_KEPT):
        watched.take(RefusedCall("Bash", call=str(number)), 0.0)
    assert len(watched.refused_calls) == REFUSED_KEPT


def test_what_the_operator_forbids_is_not_asked_about():
    watched = ProcessOutput()
    for call in (
        RefusedCall("Bash", "rm", {"command": "rm"}),
        RefusedCall("Write", "x", {"file_path": "/p/.rekindle/lock"}),
        RefusedCall("Write", "y", {"file_path": "/p/y"}),
        RefusedCall("Bash", "npm test", {"command": "npm test"}),
    ):
        watched.take(call, 0.0)
    agent = SimpleNamespace(
        stays=False,
        harness=claude_harness,
        persona=Persona(permissions=Permissions(deny=["Bash(rm:*)"])),
        protected=("/p/.rekindle",),
        folder="/p",
        environment={},
    )
    launch = SimpleNamespace(watched=watched, transcript=str, asked_digests=frozenset())
    found = find_refused_calls(agent, launch, Redaction())
    assert [call.about for call in found.missing] == ["y", "npm test"]
    assert [call.about for call in found.denied] == ["rm", "x"]
    agent.stays = True
    assert find_refused_calls(agent, launch, Redaction()) == RefusedCalls()


@pytest.mark.parametrize(
    ("path", "is_asked"),
    [
        ("/p/.git", False),
        ("/p/.git/config", False),
        ("/p/src/../.git/config", False),
        (".git/config", False),
        ("/p/.gitignore", True),
        ("/p/.github/workflows/ci.yml", True),
        (".gitignore", True),
        ("/p/src/.git/config", True),
    ],
)
def test_only_protected_paths_are_not_asked_about(path, is_asked):
    """A name that begins as a protected one is another file."""
    watched = ProcessOutput()
    watched.take(RefusedCall("Write", "x", {"file_path": path}), 0.0)
    agent = SimpleNamespace(
        stays=False,
        harness=claude_harness,
        persona=Persona(),
        protected=("/p/.git",),
        folder="/p",
        environment={},
    )
    launch = SimpleNamespace(watched=watched, transcript=str, asked_digests=frozenset())
    assert bool(find_refused_calls(agent, launch, Redaction()).missing) == is_asked


@pytest.mark.parametrize("shown", range(5, 40, 5))
def test_no_part_of_a_secret_is_left_where_a_call_is_cut(shown):
    """A secret that the cut splits is not recognised after it."""
    token = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    command = "x" * (ABOUT_CHARACTERS - shown - 1) + f" {token}"
    watched = ProcessOutput()
    watched.take(RefusedCall("Bash", command, {"command": command}), 0.0)
    agent = SimpleNamespace(
        stays=False,
        harness=claude_harness,
        persona=Persona(),
        protected=(),
        folder="/p",
        environment={},
    )
    launch = SimpleNamespace(watched=watched, transcript=str, asked_digests=frozenset())
    (call,) = find_refused_calls(agent, launch, Redaction()).missing
    ended = SimpleNamespace(ts=datetime(2026, 4, 9, tzinfo=UTC), launch="l", cycle=1)
    (event,) = RefusedCalls((call,)).record(ended, 0)
    assert "[redacted:" in call.about
    for text in (event.about, call.about, json.dumps(call.arguments)):
        assert token[:12] not in text
