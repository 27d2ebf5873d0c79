"""The levels of permissions, and what permits a refused call."""

import pytest

from rekindle.documents import manifest
from rekindle.documents.manifest import Permissions, Persona
from rekindle.policy.setup.permissions import (
    DEFAULT_LEVEL,
    explain_level,
    explain_permit,
    explain_reach,
    explain_rest,
    find_rule,
    list_narrower,
    make_permissions,
    make_persona_name,
    may_write,
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


REFUSED = "Every other tool is refused."
SANDBOX = "edit and run commands, in Codex's sandbox, which can write only to this folder"


@pytest.mark.parametrize(
    ("level", "harness", "name", "words", "rest"),
    [
        ("read", "claude-code", "read-only", "read only", REFUSED),
        ("edit", "claude-code", "edit", "edit this folder", REFUSED),
        ("run", "gemini", "edit-and-run", "edit and run commands", REFUSED),
        (
            *("read", "codex", "codex-read", "read only"),
            "Codex still runs its shell, in a read-only sandbox.",
        ),
        ("edit", "codex", "codex-run", SANDBOX, REFUSED),
        ("run", "codex", "codex-run", SANDBOX, REFUSED),
    ],
)
def test_the_texts_of_each_level(level, harness, name, words, rest):
    """Codex has two personas, because its sandbox decides about its shell."""
    assert make_persona_name(level, harness) == name
    assert explain_level(level, harness) == words
    assert explain_rest(level, harness) == rest
    assert DEFAULT_LEVEL == "run"


NO_TOOLS = (
    "no persona permits the agent any tool: without a terminal, codex refuses to write files and"
    " run commands"
)
READS_ONLY = "persona mine permits only reading"


@pytest.mark.parametrize(
    ("persona", "warning"),
    [
        (Persona(), (NO_TOOLS, True)),
        (Persona(permissions=Permissions()), (NO_TOOLS, True)),
        (Persona(permissions=Permissions(deny=["Bash"])), (NO_TOOLS, True)),
        (Persona(permissions=Permissions(deny=["Edit", "Write"])), (READS_ONLY, False)),
        (Persona(permissions=Permissions(allowed_tools=READ)), (READS_ONLY, False)),
        (Persona(permissions=Permissions(allowed_tools=[])), (READS_ONLY, False)),
        (Persona(permissions=Permissions(allowed_tools=EDIT)), ("", False)),
        (Persona(permissions=Permissions(allowed_tools=RUN)), ("", False)),
    ],
)
def test_an_agent_that_cannot_write_is_announced(persona, warning):
    """With the reason, and whether it may do anything at all."""
    assert explain_reach(persona, "mine", "codex") == warning
    assert may_write(persona) is (warning[0] == "")


@pytest.mark.parametrize(
    ("persona", "calls", "harness", "expected"),
    [
        (
            *(Persona(), ["Write"], "claude-code"),
            "{mine: {permissions: {allowed_tools: [Read, Grep, Glob, Edit, Write]}}}",
        ),
        (
            Persona(permissions=Permissions(allowed_tools=["Read"], deny=["Bash"])),
            *(["mcp__x"], "codex"),
            "{mine: {permissions: {allowed_tools: [Read, mcp__x]}}}, without `deny:`",
        ),
        (
            Persona(permissions=Permissions(allowed_tools=["Read"], deny=["Bash"])),
            *(["Bash(a b:*)"], "gemini"),
            '{mine: {permissions: {allowed_tools: [Read, "Bash(a b:*)"], deny: [Bash]}}}',
        ),
        (
            Persona(permissions=Permissions(allowed_tools=["Read"])),
            *(["replace", "glob", "grep_search", "read_file", "write_file"], "gemini"),
            "{mine: {permissions: {allowed_tools: [Read, Edit, Glob, Grep, Write]}}}",
        ),
    ],
)
def test_the_setting_that_permits_a_call(persona, calls, harness, expected):
    """One line for rekindle.yaml, with the tools under their Claude Code names."""
    text = explain_permit("mine", persona, calls, harness)
    assert text == f"set in rekindle.yaml: personas: {expected}"


@pytest.mark.parametrize(
    ("tool", "arguments", "allowed", "rule"),
    [
        ("Write", {"file_path": "/etc/x"}, ["Read"], "Write"),
        ("Write", {"file_path": 7}, ["Write"], "Write"),
        ("Write", {}, ["Write"], "Write"),
        ("Bash", {"command": "make"}, ["Bash(ls:*)"], "Bash(make:*)"),
        ("Bash", {"command": "npm run a b"}, ["Read", "Bash(ls:*)"], "Bash(npm run:*)"),
        ("Bash", {"command": 7}, ["Bash(ls:*)"], "Bash"),
        ("Bash", {"command": "npm test"}, ["Bashful(ls:*)"], "Bash"),
        ("Bash", {"command": "npm  test"}, ["Bash(ls:*)"], "Bash"),
        ("run_shell_command", {"command": "make"}, ["Write(x)"], "run_shell_command"),
    ],
)
def test_a_rule_for_other_calls(tool, arguments, allowed, rule):
    """A path or a command is named only if the persona has the tool in part."""
    assert find_rule(tool, arguments, allowed) == rule


@pytest.mark.parametrize(
    ("level", "harness", "options"),
    [
        ("run", "claude-code", ["--tools edit (edit this folder)", "--tools read (read only)"]),
        ("edit", "gemini", ["--tools read (read only)"]),
        ("read", "claude-code", []),
        ("run", "codex", ["--tools read (read only)"]),
        ("edit", "codex", ["--tools read (read only)"]),
    ],
)
def test_options_that_permit_less(level, harness, options):
    assert list_narrower(level, harness) == options
