"""Permission requests are decided by the persona's rules."""

import pytest

from rekindle.harnesses.acp.acp_calls import AcpCall
from rekindle.harnesses.acp.call_rules import decide_call


@pytest.fixture
def rules(tmp_path):
    """Return rules without any permission, for an agent in its own folder."""
    return {
        "allowed": [],
        "deny": [],
        "ask": [],
        "folder": str(tmp_path),
        "draft": "",
        "protected": [],
    }


def make_call(kind, **update):
    call = AcpCall("c1")
    call.add({"kind": kind, **update})
    return call


def run(command):
    return make_call("execute", rawInput={"command": command})


def edit(path):
    return make_call("edit", rawInput={"file_path": str(path)})


def test_without_a_list_of_tools_a_person_decides(rules):
    assert decide_call({**rules, "allowed": None}, run("ls")) == "ask"
    assert decide_call({**rules, "allowed": None}, make_call("other")) == "ask"


def test_a_tool_that_is_not_listed_is_rejected_and_reading_is_not(rules):
    assert decide_call(rules, run("ls")) == "reject"
    assert decide_call(rules, make_call("read")) == "allow"
    assert decide_call(rules, make_call("search")) == "allow"
    assert decide_call(rules, make_call("fetch")) == "reject"


@pytest.mark.parametrize(
    ("command", "decision"),
    [
        ("git log", "allow"),
        ("git log -1 --oneline", "allow"),
        ("git logs", "reject"),
        ("cd x && git log", "reject"),
        ("git log; rm x", "reject"),
        ("git log $(rm x)", "reject"),
        ("git log `rm x`", "reject"),
        ("git log > x", "reject"),
        ("git log\nrm x", "reject"),
    ],
)
def test_a_part_of_a_shell_is_allowed_only_for_simple_commands(rules, command, decision):
    assert decide_call({**rules, "allowed": [["Bash", "git log"]]}, run(command)) == decision


def test_a_command_that_is_only_a_title_is_not_allowed_by_its_start(rules):
    rules["allowed"] = [["Bash", "git log"]]
    assert decide_call(rules, make_call("execute", title="git log")) == "reject"


@pytest.mark.parametrize(
    "call",
    [
        run("git push"),
        run("cd x; git -C y push origin"),
        run("sh -c 'git push'"),
        make_call("execute", title="git push"),
    ],
)
@pytest.mark.parametrize(("key", "decision"), [("deny", "reject"), ("ask", "ask")])
def test_a_forbidden_command_is_found_in_every_spelling(rules, call, key, decision):
    """Rules that deny or ask override the tools that are listed."""
    rules |= {"allowed": [["Bash", ""]], key: [["Bash", "git push"]]}
    assert decide_call(rules, call) == decision
    assert decide_call(rules, run("git log")) == "allow"


def test_denials_override_questions(rules):
    rules |= {"allowed": None, "ask": [["Bash", ""]], "deny": [["Bash", "git push"]]}
    assert decide_call(rules, run("git push")) == "reject"
    assert decide_call(rules, run("ls")) == "ask"


@pytest.mark.parametrize("name", ["Edit", "Write", "MultiEdit"])
def test_files_may_be_written_in_the_folder_only(rules, tmp_path, name):
    """Agents name only the kind of a tool, so one name stands for all tools that write."""
    rules["allowed"] = [[name, ""]]
    (tmp_path / "out").symlink_to("/etc")
    assert decide_call(rules, edit("a/b.py")) == "allow"
    assert decide_call(rules, edit(tmp_path / "a.py")) == "allow"
    assert decide_call(rules, edit("../a.py")) == "reject"
    assert decide_call(rules, edit("/etc/passwd")) == "reject"
    assert decide_call(rules, edit("out/passwd")) == "reject"
    assert decide_call(rules, make_call("edit")) == "reject"


@pytest.mark.parametrize("kind", ["read", "search", "edit"])
def test_a_command_is_decided_as_one_whatever_the_kind_of_its_call(rules, kind):
    call = make_call(kind, rawInput={"command": "rm -rf x", "path": "a"})
    assert decide_call({**rules, "allowed": [["Edit", ""]]}, call) == "reject"
    rules |= {"allowed": [["Bash", ""]], "deny": [["Bash", "rm"]]}
    assert decide_call(rules, call) == "reject"


PATCH = "*** Begin Patch\n*** Update File: {}\n@@\n-a\n+b\n*** End Patch"


@pytest.mark.parametrize(
    "given",
    [
        {"path": "a", "destination": "/etc/passwd"},
        {"path": "a", "new_path": ".rekindle/state.json"},
        {"path": "a", "to": "~/.profile"},
        {"path": "a", "unheard_of": "/etc/passwd"},
        {"path": "a", "unheard_of": ".rekindle/x"},
        {"path": "a\0b"},
        {"paths": ["a", "/etc/passwd"]},
        {"edits": [{"path": "a"}, {"path": "/etc/passwd"}]},
        {"patchText": PATCH.format("/etc/passwd"), "path": "a"},
        {"patchText": PATCH.format(".rekindle/x")},
        {"input": PATCH.format("../x"), "path": "a"},
        {"diff": "--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b", "path": "a"},
    ],
)
def test_no_file_outside_the_folder_is_written_under_any_name(rules, tmp_path, given):
    rules |= {"allowed": [["Edit", ""]], "protected": [str(tmp_path / ".rekindle")]}
    inside = [{"path": "a"}]
    assert decide_call(rules, make_call("edit", rawInput=given, locations=inside)) == "reject"


@pytest.mark.parametrize(
    "given",
    [
        {"path": "a", "old_string": "/etc/passwd", "newString": "/usr/bin/env"},
        {"path": "a", "edit": {"old": "/etc/passwd", "new": "/bin/sh"}, "mode": "overwrite"},
        {"path": "a", "content": "#!/bin/sh\n--- b/c\n"},
        {"patchText": PATCH.format("a")},
        {"diff": "--- /dev/null\n+++ b/a\n@@ -0 +1 @@\n+b"},
    ],
)
def test_texts_may_contain_any_path(rules, given):
    call = make_call("edit", rawInput=given)
    assert decide_call({**rules, "allowed": [["Edit", ""]]}, call) == "allow"


def test_the_draft_may_always_be_written_and_protected_files_never(rules, tmp_path):
    draft, inner = tmp_path / ".rekindle/draft.md", tmp_path / ".rekindle/state.json"
    rules |= {"draft": str(draft), "protected": [str(tmp_path / ".rekindle")]}
    assert decide_call(rules, edit(draft)) == "allow"
    for allowed in ([["Edit", ""]], None):
        assert decide_call({**rules, "allowed": allowed}, edit(inner)) == "reject"
    two = make_call("edit", rawInput={"file_path": str(draft)}, locations=[{"path": str(inner)}])
    assert decide_call(rules, two) == "reject"
    given = {"path": str(draft), "mode": "overwrite", "content": "*** Update File: a"}
    assert decide_call(rules, make_call("edit", rawInput=given)) == "allow"
    given = {"path": str(draft), "copy": str(inner)}
    assert decide_call(rules, make_call("edit", rawInput=given)) == "reject"


@pytest.mark.parametrize(
    ("title", "more"),
    [
        ("Read and empty the inbox", {"delete": True, "mailbox": "inbox"}),
        ("Grep", {"argv": ["rm", "-rf", "x"]}),
        ("Edit", {"file_path": "a", "shell": "rm -rf x"}),
        ("Bash", {"argv": ["rm", "-rf", "x"]}),
        ("WebFetch", {"upload": "a"}),
    ],
)
@pytest.mark.parametrize("kind", ["other", "think", ""])
def test_a_title_does_not_make_a_call_one_of_a_persona_s_tools(rules, kind, title, more):
    """Titles are written by MCP servers and models, so only the kind names a tool."""
    rules["allowed"] = [[name, ""] for name in ("Edit", "Bash", "WebFetch")]
    call = make_call(kind, title=title, rawInput=more)
    assert call.tool == "tool"
    assert decide_call(rules, call) == "reject"
    assert decide_call({**rules, "allowed": None}, call) == "ask"


@pytest.mark.parametrize(("key", "decision"), [("deny", "reject"), ("ask", "ask")])
def test_a_title_can_still_match_a_rule_that_forbids(rules, key, decision):
    rules |= {"allowed": None, key: [["WebSearch", ""]]}
    assert decide_call(rules, make_call("other", title="WebSearch cats")) == decision
    rules |= {"protected": [f"{rules['folder']}/p"]}
    protected = make_call("other", title="Edit", rawInput={"file_path": "p"})
    assert decide_call(rules, protected) == "reject"


@pytest.mark.parametrize(
    "more", [{"args": ["&&", "rm", "x"]}, {"cmd": "rm x"}, {"script": ["rm", "x"]}]
)
def test_every_part_of_a_command_counts(rules, more):
    rules["allowed"] = [["Bash", "npm test"]]
    call = make_call("execute", rawInput={"command": "npm test", **more})
    assert decide_call(rules, call) == "reject"
    assert "rm x" in call.arguments["command"]
