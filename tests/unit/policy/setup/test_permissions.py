"""The levels of permissions, and what permits a refused call."""

import pytest

from rekindle.documents import manifest
from rekindle.documents.manifest import Permissions, Persona
from rekindle.policy.setup.permissions import (
    explain_permit,
    explain_rest,
    find_rule,
    make_permissions,
    permit_tools,
    render_permission_setting,
)

READ = ["Read", "Grep", "Glob"]
EDIT = [*READ, "Edit", "Write"]
RUN = [*EDIT, "Bash"]


@pytest.mark.parametrize(
    ("level", "harness", "permissions", "writes"),
    [
        ("read", "claude-code", Permissions(allowed_tools=READ), False),
        ("edit", "claude-code", Permissions(allowed_tools=EDIT), True),
        ("run", "gemini", Permissions(allowed_tools=RUN), True),
        ("read", "codex", Permissions(deny=["Edit", "Write"]), False),
        ("edit", "codex", Permissions(allowed_tools=RUN), True),
        ("run", "codex", Permissions(allowed_tools=RUN), True),
    ],
)
def test_each_level_is_a_persona_of_its_harness(level, harness, permissions, writes):
    found = make_permissions(level, harness)
    assert found == permissions
    assert Persona(permissions=found).writes is writes


@pytest.mark.parametrize(
    ("allowed", "calls", "harness", "tools"),
    [
        (None, ["Write"], "claude-code", EDIT),
        (None, ["Write", "Bash"], "claude-code", RUN),
        (None, ["run_shell_command"], "gemini", RUN),
        (None, ["Write"], "codex", RUN),
        (None, ["WebFetch"], "claude-code", [*READ, "WebFetch"]),
        (["Read"], ["Bash"], "claude-code", ["Read", "Bash"]),
    ],
)
def test_a_refused_call_is_permitted_beside_all_that_is_needed(allowed, calls, harness, tools):
    """A list of one tool would take all others away."""
    persona = Persona(permissions=Permissions(allowed_tools=allowed))
    assert permit_tools(persona, calls, harness) == tools
    text = f"version: 1\n{render_permission_setting('mine', tools)}\n"
    assert manifest.parse(text).personas["mine"].permissions.allowed_tools == tools


@pytest.mark.parametrize(
    ("permissions", "harness", "helps"),
    [
        (Permissions(allowed_tools=["Read"]), "codex", "allowed_tools: [Read, Bash]}}}"),
        (Permissions(allowed_tools=RUN), "codex", "`writable_roots`"),
        (Permissions(deny=["Edit", "Write"]), "codex", "Bash]}}}, without `deny:`"),
        (Permissions(allowed_tools=RUN), "claude-code", "own settings"),
    ],
)
def test_a_hint_names_a_change_that_helps(permissions, harness, helps):
    """Never the list that the manifest has already."""
    text = explain_permit("mine", Persona(permissions=permissions), ["Bash"], harness)
    assert helps in text
    has_list = "allowed_tools" in text
    assert has_list is (permissions.allowed_tools != RUN)


def test_a_hint_repeats_what_the_persona_denies():
    """The line replaces the persona's own: a rule left out would permit what was denied."""
    permissions = Permissions(allowed_tools=["Write"], deny=["Bash(rm:*)"])
    text = explain_permit("mine", Persona(permissions=permissions), ["Bash"], "claude-code")
    assert text.endswith('{allowed_tools: [Write, Bash], deny: ["Bash(rm:*)"]}}}')


@pytest.mark.parametrize(
    ("tool", "arguments", "allowed", "rule"),
    [
        ("Bash", {"command": "npm test --ci"}, ["Bash(ls:*)"], "Bash(npm test:*)"),
        ("run_shell_command", {"command": "make"}, ["Bash(ls:*)"], "Bash(make:*)"),
        ("Bash", {"command": "npm test"}, ["Write"], "Bash"),
        ("Bash", {"command": "npm test; rm x"}, ["Bash(ls:*)"], "Bash"),
        ("Write", {"file_path": "/etc/x"}, ["Write"], "Write(//etc/x)"),
        ("Write", {"file_path": "x"}, ["Write"], "Write"),
    ],
)
def test_a_rule_permits_no_more_than_the_call_needs(tool, arguments, allowed, rule):
    """A persona that permits some commands does not get the whole shell."""
    assert find_rule(tool, arguments, allowed) == rule


def test_the_comment_of_a_level_tells_what_codex_still_runs():
    assert "shell" in explain_rest("read", "codex")
    assert explain_rest("read", "claude-code") == explain_rest("run", "codex")
