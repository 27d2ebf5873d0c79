"""Whether a persona's `deny` rule refused a call, for the rules that each CLI accepts."""

import pytest

from rekindle.documents.launches.launch_types import RefusedCall
from rekindle.documents.manifest import Permissions
from rekindle.errors import UnenforceableError
from rekindle.harnesses.gemini.gemini_policy import TOOLS, render_policy
from rekindle.policy.setup.deny_rules import is_denied


def bash(command):
    return RefusedCall("Bash", command, {"command": command})


def write(path, tool="Write"):
    return RefusedCall(tool, path, {"file_path": path})


def fetch(url):
    return RefusedCall("WebFetch", url, {"url": url})


def codex(tool, permission):
    return RefusedCall(tool, "x", {"cmd": "x"}, "c", permission)


@pytest.mark.parametrize(
    ("rule", "call", "denied"),
    [
        # Claude Code: whole tools and servers
        ("Bash", bash("npm test"), True),
        ("Bash(*)", bash("npm test"), True),
        ("Bash", write("/p/a"), False),
        ("Edit", write("/p/a"), False),
        ("mcp__git__*", RefusedCall("mcp__git__push"), True),
        ("mcp__git", RefusedCall("mcp__git__push"), True),
        ("mcp__git", RefusedCall("mcp__github__push"), False),
        # Claude Code: commands
        ("Bash(rm:*)", bash("rm"), True),
        ("Bash(rm:*)", bash("rm -rf build"), True),
        ("Bash(rm *)", bash("rm -rf build"), True),
        ("Bash(rm:*)", bash("cd src && rm x"), True),
        ("Bash(rm:*)", bash("LANG=C timeout 5 rm x"), True),
        ("Bash(rm:*)", bash("npm test"), False),
        ("Bash(rm:*)", bash("rmdir x"), False),
        ("Bash(rm:*)", bash("echo rm"), False),
        ("Bash(rm:*)", RefusedCall("Bash", "rm"), False),
        ("Bash(npm run build)", bash("npm run build"), True),
        ("Bash(npm run build)", bash("npm run build --watch"), False),
        ("Bash(git * --force)", bash("git push --force"), True),
        ("Bash(git * --force)", bash("git push"), False),
        # Claude Code: paths
        ("Edit(src/**)", write("/p/src/a/b.py"), True),
        ("Write(src/**)", write("src/a.py", "Edit"), True),
        ("Edit(./src)", write("/p/src/a.py"), True),
        ("Edit(/src/*.py)", write("/p/src/a.py"), True),
        ("Edit(src/*.py)", write("/p/src/a/b.py"), False),
        ("Edit(src/**/*.py)", write("/p/src/b.py"), True),
        ("Edit(.env)", write("/p/deep/.env"), True),
        ("Edit(.env)", write("/p/.envrc"), False),
        ("Edit(.env)", write("/p/a.py"), False),
        ("Edit(//etc/**)", write("/etc/hosts"), True),
        ("Edit(//etc/**)", write("/p/etc/hosts"), False),
        ("Edit(~/notes/*)", write("/home/user/notes/a"), True),
        ("Edit(~/notes/*)", write("/p/notes/a"), False),
        ("Edit(src/**)", write("/p/src/../a.py"), False),
        ("Edit(a?c)", write("/p/abc"), True),
        ("Read(secret.txt)", RefusedCall("Read", "", {"file_path": "/p/secret.txt"}), True),
        ("Read(secret/**)", RefusedCall("Grep", "", {"path": "/p/secret/a"}), True),
        ("Read(secret/**)", RefusedCall("Grep", "", {"pattern": "x"}), False),
        ("Read(src/**)", write("/p/src/a.py"), False),
        # Claude Code: other tools
        ("WebFetch(domain:example.com)", fetch("https://example.com/x"), True),
        ("WebFetch(domain:example.com)", fetch("https://example.org/x"), False),
        ("WebFetch(domain:example.com)", fetch("https://[broken"), False),
        ("Task(Explore)", RefusedCall("Task", "", {"subagent_type": "Explore"}), True),
        ("Task(Explore)", RefusedCall("Task", "", {"subagent_type": "Plan"}), False),
        ("", bash("ls"), False),
        # Codex
        ("Write", codex("exec_command", "Write"), True),
        ("Edit", codex("apply_patch", "Write"), True),
        ("Write(*)", codex("exec_command", "Write"), True),
        ("Bash", codex("exec_command", "Bash"), True),
        ("Write", codex("exec_command", "Bash"), False),
        ("WebSearch", codex("exec_command", "Bash"), False),
        # Gemini CLI
        ("Write", write("a", "write_file"), True),
        ("write_file", write("a", "write_file"), True),
        ("Edit(**)", write("a", "replace"), True),
        ("Write", write("a", "replace"), False),
        ("Bash", RefusedCall("run_shell_command", "ls", {"command": "ls"}), True),
        ("mcp_web_*", RefusedCall("mcp_web_search"), True),
        ("mcp_*_search", RefusedCall("mcp_web_search"), True),
        ("mcp_web_*", RefusedCall("mcp_git_push"), False),
        ("*", write("a", "replace"), True),
    ],
)
def test_a_rule_denies_only_the_calls_that_it_matches(rule, call, denied):
    assert is_denied([rule], call, "/p", "/home/user") is denied


def test_one_matching_rule_is_enough():
    assert is_denied(["Edit(src)", "Bash(rm:*)"], bash("rm x"), "/p", "")
    assert not is_denied([], bash("rm x"), "/p", "")


@pytest.mark.parametrize("name", ["Bash", "Edit", "LS", "MultiEdit", "Read", "Task", "TodoWrite"])
def test_names_of_other_clis_deny_the_tools_that_geminis_policy_denies(name):
    policy = render_policy(Permissions(deny=[name]))
    for tool in TOOLS:
        assert is_denied([name], RefusedCall(tool), "/p", "") is (f'"{tool}"' in policy)


def test_a_rule_for_a_part_of_geminis_shell_is_refused_before_any_call():
    with pytest.raises(UnenforceableError):
        render_policy(Permissions(deny=["Bash(rm:*)"]))
