"""The gate: the calls that it holds, and the reasons for which it refuses them."""

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import msgspec
import pytest

from rekindle.documents.hooks.hook_settings import HookInstallation
from rekindle.documents.launches.launch_types import LaunchSpec
from rekindle.documents.manifest import Permissions, Persona
from rekindle.errors import UnenforceableError
from rekindle.flows.launches.permission_desk import hash_call
from rekindle.harnesses import ask_gate
from rekindle.harnesses.claude_code import claude_harness
from rekindle.harnesses.codex import codex_harness
from rekindle.harnesses.gemini import gemini_harness
from rekindle.hook.ask_rules import is_asked
from rekindle.stores.folders.brake_files import BrakeFiles
from rekindle.system.files import hook_program

PUSH = {"command": "git push"}
HERE = "/w/app"
PUSH_HASH = hash_call("Bash", PUSH, HERE)
REFUSED = 2


class Gate:
    def __init__(self, folder):
        self.folder, self.program = folder, folder / "gate.pyc"
        self.program.write_bytes(hook_program.compile_hook("gate"))
        self.files = BrakeFiles(folder, folder)
        self.harness, self.python = "codex", sys.executable
        self.rules(seconds=60)

    def rules(self, **more):
        rules = {"ask": [["Bash", "git push"]], "seconds": 60, "draft": "/w/draft.md"} | more
        (self.folder / "gate.json").write_text(json.dumps(rules))

    def start(self, tool="Bash", arguments=None, *, payload=None, **environment):
        line = ask_gate.render_command_line(
            [self.python, "-I", "-S", str(self.program), self.harness, f"{self.folder}/gate.json"]
        )
        given = PUSH if arguments is None else arguments
        call = {"tool_name": tool, "tool_input": given, "cwd": HERE}
        (self.folder / "in").write_bytes(json.dumps(call).encode() if payload is None else payload)
        with (self.folder / "in").open("rb") as given:
            return subprocess.Popen(
                ["/bin/sh", "-c", line],
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={"REKINDLE_LAUNCH": "l1", **environment},
            )

    def request(self):
        """Return the id of the request and its call, once it was written."""
        deadline = time.monotonic() + 120
        while not (names := list(self.files.list_requests("l1"))):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        [name] = names
        return name, self.files.request("l1", name).read_bytes().split(b"\n")[1]

    def decide(self, name, text):
        path = self.files.answer("l1", name)
        path.with_suffix(".tmp").write_text(text)
        path.with_suffix(".tmp").rename(path)


@pytest.fixture
def gate(tmp_path):
    return Gate(tmp_path)


def finish(child):
    out, err = child.communicate(timeout=120)
    return child.returncode, out.decode(), err.decode()


@pytest.mark.parametrize(
    ("command", "asked"),
    [
        ("git push", True),
        ("git   push --force", True),
        ("cd x && git push", True),
        ("sh -c 'git push'", True),
        ('bash -c "cd x; git push"', True),
        ("/usr/bin/git push", True),
        ('g"i"t pu\\sh', True),
        ("X=$(git push)", True),
        ("git\\\n push", True),
        ("\\git push", True),
        ("git -C x push", True),
        ("git --no-pager push", True),
        ("git -c a=b -c c=d --no-pager push", True),
        ("git --git-dir=.git push", True),
        ('git -C "my other app" push', True),
        ('git --git-dir="my app/.git" push', True),
        ("sh -c 'git -C x push'", True),
        ("bash -c $'cd app\\ngit push'", True),
        ("su -c'git push'", True),
        ("env -S'g\"\"it push'", True),
        ("git -C x commit -m push", False),
        ("git commit -m 'git' -a push", True),
        ("git -C x", False),
        ("git status", False),
        ("digit push", False),
        ("git pull", False),
    ],
)
def test_a_rule_covers_a_command_in_any_place(command, asked):
    """Asking too often is safe."""
    assert is_asked([["Bash", "git push"]], "Bash", {"command": command}) is asked
    assert is_asked([["Bash", "git push"]], "Bash", {"command": command.split()}) is asked


def test_a_command_on_two_lines_is_covered():
    assert is_asked([["Bash", "git push"]], "Bash", {"command": "git pu\\\nsh"})


@pytest.mark.parametrize("part", ["git -a ", "'git' -", "-' ", 'git -"x y" ', "\\'"])
def test_a_long_command_does_not_slow_the_gate(part):
    """A gate that is still running at the CLI's timeout would let the call run in some CLIs."""
    command = part * 100_000
    rules = [["Bash", "git push"], ["Bash", "git*x*y z"], ["Bash", "git git git git"]]
    assert is_asked(rules[:1], "Bash", {"command": f"{command}; git pull"}) is False
    assert is_asked(rules, "Bash", {"command": f"{command}; git push"}) is True


@pytest.mark.parametrize(
    ("rule", "tool", "asked"),
    [
        (["Bash", ""], "Bash", True),
        (["Bash", ""], "BashOutput", False),
        (["mcp__git*", ""], "mcp__git__push", True),
        (["mcp__git__push", ""], "mcp__git__pull", False),
        (["Bash", "git*push"], "Bash", True),
        (["Bash", "git*pull"], "Bash", False),
        (["Bash", "git*x push"], "Bash", True),
        (["Bash", "it*push"], "Bash", False),
    ],
)
def test_a_rule_covers_its_tool(rule, tool, asked):
    assert is_asked([rule], tool, {"command": "git -C x push", "deep": [{"a": 1}]}) is asked


def test_an_approval_for_this_call_permits_it(gate):
    child = gate.start()
    name, call = gate.request()
    assert hashlib.sha256(call).hexdigest() == PUSH_HASH
    gate.decide(name, f"allow {PUSH_HASH}\n")
    assert finish(child) == (0, "", "")
    assert list(gate.files.list_requests("l1")) == []


def test_a_denial_refuses_it_with_a_reason(gate):
    child = gate.start()
    name, _ = gate.request()
    gate.decide(name, f"deny {PUSH_HASH}\nA person denied it.")
    code, out, err = finish(child)
    assert (code, out) == (REFUSED, "")
    assert err.startswith("A person denied it. Continue with")


def test_a_refusal_needs_no_hash(gate):
    """The supervisor cannot hash a request that it cannot read."""
    child = gate.start()
    name, _ = gate.request()
    gate.decide(name, "deny -\nIt cannot be read.")
    code, _, err = finish(child)
    assert code == REFUSED
    assert err.startswith("It cannot be read. Continue with")


@pytest.mark.parametrize(
    ("tool", "is_hashed"), [("Bash", False), ("run_shell_command", False), ("mcp__x__file", True)]
)
def test_the_description_of_a_command_is_shown_but_not_hashed(gate, tool, is_hashed):
    """It often differs in each attempt. For other tools it has an effect."""
    gate.rules(ask=[[tool, ""]])
    child = gate.start(tool, {**PUSH, "description": "Publish"})
    name, call = gate.request()
    assert ("description" in json.loads(call)["arguments"]) is is_hashed
    assert b"Publish" in gate.files.request("l1", name).read_bytes()
    digest = hash_call(tool, {**PUSH, "description": "Other words"}, HERE)
    gate.decide(name, f"allow {digest}\n")
    assert finish(child)[0] == (REFUSED if is_hashed else 0)


def test_a_call_without_its_folder_is_refused(gate):
    payload = json.dumps({"tool_name": "Bash", "tool_input": PUSH}).encode()
    assert finish(gate.start(payload=payload))[0] == REFUSED
    assert list(gate.files.list_requests("l1")) == []


def test_claude_code_gets_the_reason_as_json(gate):
    gate.harness = "claude-code"
    gate.rules(seconds=0.1)
    code, out, _ = finish(gate.start())
    decision = json.loads(out)["hookSpecificOutput"]["decision"]
    assert (code, decision["behavior"]) == (0, "deny")
    assert "has not answered yet" in decision["message"]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("git push", 0),
        ("cd x && /usr/bin/git push; sh -c 'git push'", 0),
        ("git pull", 0),
        ("git -C x push", REFUSED),
        ("git  push", REFUSED),
        ("g''it push", REFUSED),
        ("git -C x push # git push", REFUSED),
        ('sh -c "cd x;git push"', REFUSED),
    ],
)
def test_claude_code_refuses_a_spelling_that_its_own_rules_miss(gate, command, code):
    """A command in the exact spelling gets a question from the CLI, which starts the gate again."""
    gate.harness = "claude-code:PreToolUse"
    ended, out, err = finish(gate.start(arguments={"command": command, "description": "git  push"}))
    assert (ended, out, "starts with `git push`" in err) == (code, "", code == REFUSED)
    assert finish(gate.start(payload=b"{"))[0] == REFUSED


@pytest.mark.parametrize(
    "text",
    [
        f"allow {hash_call('Bash', {'command': 'git push --force'}, HERE)}\n",
        f"allow {hash_call('Bash', PUSH, '/w/other')}\n",
        "allow\n",
        "allow ",
        "",
        f"{PUSH_HASH} allow\n",
        f"ALLOW {PUSH_HASH}\n",
        f"allow  {PUSH_HASH}\n",
    ],
    ids=[
        "other call",
        "other folder",
        "no hash",
        "torn",
        "empty",
        "swapped",
        "capitals",
        "two spaces",
    ],
)
def test_any_other_answer_refuses_it(gate, text):
    """The answer for another call counts for no call, and neither does a torn or empty one."""
    child = gate.start()
    name, _ = gate.request()
    gate.decide(name, text)
    assert finish(child)[0] == REFUSED


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b"[]",
        b'{"tool_name": 1, "tool_input": {}}',
        b'{"tool_name": "Bash", "tool_input": "git push"}',
        b'{"tool_name": "Bash"}',
        b"\xff" * 100,
        b'{"tool_name": "Bash", "tool_input": {"command": "' + b"x" * 5_000_000 + b'"}}',
    ],
    ids=["empty", "torn", "list", "number", "text", "no input", "bytes", "long"],
)
def test_a_payload_that_cannot_be_read_refuses_the_call(gate, payload):
    assert finish(gate.start(payload=payload))[0] == REFUSED


@pytest.mark.parametrize(
    "broken", ["program", "python", "rules", "launch", "torn rules", "torn program", "folder"]
)
def test_a_broken_gate_refuses_every_call(gate, broken):
    """Also one that no rule covers, because the gate cannot know the rules."""
    environment = {}
    match broken:
        case "program":
            gate.program.unlink()
        case "python":
            gate.python = "/nowhere/python"
        case "rules":
            (gate.folder / "gate.json").unlink()
        case "launch":
            environment = {"REKINDLE_LAUNCH": "../x"}
        case "torn rules":
            (gate.folder / "gate.json").write_text('{"ask": [')
        case "torn program":
            gate.program.write_bytes(gate.program.read_bytes()[:200])
        case "folder":
            environment = {"REKINDLE_MARKS": "/nowhere"}
    assert finish(gate.start(**environment))[0] == REFUSED


@pytest.mark.parametrize("number", [9, 15, 2])
def test_a_killed_python_refuses_the_call(gate, number):
    child = gate.start()
    gate.request()
    [python] = Path(f"/proc/{child.pid}/task/{child.pid}/children").read_text().split()
    os.kill(int(python), number)
    assert finish(child)[0] == REFUSED


def test_no_answer_refuses_the_call_and_the_gate_shows_that_it_waits(gate):
    """The request's time is a heartbeat for the supervisor."""
    gate.rules(seconds=3)
    child = gate.start()
    name, _ = gate.request()
    path, beats = gate.files.request("l1", name), set()

    def watch():
        while child.poll() is None:
            try:
                beats.add(path.stat().st_mtime_ns)
            except FileNotFoundError:
                return
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    code, _, err = finish(child)
    watcher.join()
    assert (code, len(beats) > 1) == (REFUSED, True)
    assert "has not answered yet" in err
    assert not path.exists()


def test_a_call_without_a_rule_and_the_draft_need_no_approval(gate):
    assert finish(gate.start(arguments={"command": "git status"})) == (0, "", "")
    assert finish(gate.start("Read", {"file_path": "git push"})) == (0, "", "")
    gate.rules(ask=[["Write", ""]])
    gate.harness = "gemini"
    assert finish(gate.start("Write", {"file_path": "/w/draft.md"})) == (
        0,
        '{"decision":"allow"}',
        "",
    )


def test_a_command_that_also_names_the_draft_is_held(gate):
    gate.rules(seconds=0.1)
    assert finish(gate.start(arguments={**PUSH, "file_path": "/w/draft.md"}))[0] == REFUSED


def ask(*rules, **more):
    persona = Persona(permissions=Permissions(ask=list(rules), **more))
    return LaunchSpec(
        session="3f2c1b9e-0000-4000-8000-000000000001",
        persona=persona,
        hook=("python", "hook.pyc"),
        gate=("python", "gate.pyc"),
        gate_seconds=300.0,
        scratch="/s",
        draft="/w/draft.md",
    )


def test_claude_code_asks_for_exactly_the_rules():
    """The CLI's timeout is twice the gate's, so the gate always answers first."""
    made = claude_harness.command(ask("Bash(git push:*)", "WebFetch", allowed_tools=["Read"]))
    settings = json.loads(made.files["hooks.json"])
    assert settings["permissions"]["ask"] == [
        "Bash(git push*)",
        "Bash(* git push*)",
        "Bash(*/git push*)",
        'Bash(*"git push*)',
        "Bash(*'git push*)",
        "WebFetch",
    ]
    [before] = settings["hooks"]["PreToolUse"][-1]["hooks"]
    assert before["onFailure"] == "block"
    assert before["command"] == "python gate.pyc claude-code:PreToolUse /s/gate.json || exit 2"
    [entry] = settings["hooks"]["PermissionRequest"]
    [handler] = entry["hooks"]
    assert handler["timeout"] == 600
    assert handler["command"] == "python gate.pyc claude-code /s/gate.json || exit 2"
    assert json.loads(made.files["gate.json"]) == {
        "ask": [["Bash", "git push"], ["WebFetch", ""]],
        "seconds": 300.0,
        "draft": "/w/draft.md",
    }
    assert "--tools=Read,Bash,WebFetch,Write,Edit" in made.argv


def test_codex_holds_commands_in_full_access():
    """The gate comes first, and Codex runs it even if the user has disabled hooks."""
    made = codex_harness.command(
        msgspec.structs.replace(ask("Bash(git push*)", allowed_tools=["Bash"]), session="")
    )
    [setting] = [word for word in made.argv if word.startswith("--config=hooks.PreToolUse=")]
    command = '"command"="python gate.pyc codex /s/gate.json || exit 2","timeout"=600'
    assert setting.startswith(
        f'--config=hooks.PreToolUse=[{{"matcher"="Bash","hooks"=[{{"type"="command",{command}'
    )
    assert {"--enable=hooks", "--sandbox=danger-full-access"} <= set(made.argv)
    assert "--disable=shell_tool" not in made.argv
    assert json.loads(made.files["gate.json"])["ask"] == [["Bash", "git push"]]
    assert codex_harness.command(msgspec.structs.replace(ask(), session="")).files == {}


def test_codex_asks_about_commands_only():
    with pytest.raises(UnenforceableError) as caught:
        codex_harness.command(msgspec.structs.replace(ask("WebFetch"), session=""))
    assert caught.value.hint.startswith("`ask:` takes `Bash`, and commands")


@pytest.mark.parametrize("rule", ["Bash(git push*)", "Bash"])
def test_codex_gets_no_shell_from_a_rule(rule):
    """Codex would get full access, and run every other command without a question."""
    start = ask(rule, allowed_tools=["Read", "Write"])
    with pytest.raises(UnenforceableError) as caught:
        codex_harness.command(msgspec.structs.replace(start, session=""))
    assert "add `Bash` to `allowed_tools`" in caught.value.hint


@pytest.mark.parametrize(
    ("denied", "sandbox"), [("Write", "read-only"), ("Bash", "workspace-write")]
)
def test_codex_gets_no_full_access_if_writing_or_the_shell_is_denied(denied, sandbox):
    start = ask("Bash(git push*)", allowed_tools=["Bash", "Write"], deny=[denied])
    made = codex_harness.command(msgspec.structs.replace(start, session=""))
    assert f"--sandbox={sandbox}" in made.argv


def test_gemini_cli_allows_what_its_installed_gate_holds():
    made = gemini_harness.command(ask("Bash(git push*)", "WebFetch", allowed_tools=["Bash"]))
    assert made.environment["GEMINI_CLI_REKINDLE_GATE"] == "/s/gate.json"
    assert json.loads(made.files["gate.json"])["ask"] == [
        ["run_shell_command", "git push"],
        ["web_fetch", ""],
    ]
    policy = tomllib.loads(made.files["gemini-policy.toml"])["rule"]
    allowed = [rule["toolName"] for rule in policy if rule["decision"] == "allow"]
    assert allowed == ["web_fetch", "run_shell_command"]
    only = gemini_harness.command(ask("Bash(git push*)")).files["gemini-policy.toml"]
    assert [rule["commandPrefix"] for rule in tomllib.loads(only)["rule"]] == ["git push"]
    assert "GEMINI_CLI_REKINDLE_GATE" not in gemini_harness.command(ask()).environment


@pytest.mark.parametrize(("rules", "code"), [("", 0), ("/s/gate.json", REFUSED)])
def test_a_missing_gate_refuses_only_the_calls_of_a_launch_with_rules(rules, code):
    """A person's own sessions run without it."""
    [entry] = gemini_harness.gate_hooks(["/nowhere/python", "gate.pyc"])["BeforeTool"]
    [handler] = entry["hooks"]
    ended = subprocess.run(
        ["/bin/sh", "-c", handler["command"]],
        env={"GEMINI_CLI_REKINDLE_GATE": rules} if rules else {},
        capture_output=True,
        check=False,
    )
    assert (ended.returncode, handler["timeout"]) == (code, 1_200_000)


GATE = gemini_harness.gate_hooks(["python", "/p/gate.pyc"])
LINE = GATE["BeforeTool"][0]["hooks"][0]["command"]


REDACTION = {"environmentVariableRedaction": {"enabled": True, "blocked": ["A"]}}


def find_obstacle(user, project, environment=None):
    installed = HookInstallation("settings.json", json.dumps(user), "", {})
    obstacle = gemini_harness.find_gate_obstacle(installed, project, environment or {})
    return obstacle.why if obstacle else ""


@pytest.mark.parametrize(
    ("user", "project", "words"),
    [
        ({}, {}, "not installed"),
        ({"hooks": GATE, "hooksConfig": {"enabled": False}}, {}, "disable hooks"),
        ({"hooks": GATE, "hooksConfig": {"disabled": [LINE]}}, {}, "disable hooks"),
        ({"hooks": GATE, "security": REDACTION}, {}, "contain `environmentVariableRedaction`"),
        ({"hooks": GATE}, {"hooks": None}, "contain `hooks`"),
        ({"hooks": GATE}, {"hooks": []}, "contain `hooks`"),
        ({"hooks": GATE}, {"hooks": {"BeforeTool": []}}, "contain `hooks`"),
        ({"hooks": GATE}, {"hooksConfig": {"enabled": False}}, "contain `hooksConfig`"),
        ({"hooks": GATE}, {"hooksConfig": None}, "contain `hooksConfig`"),
        ({"hooks": GATE}, {"security": REDACTION}, "contain `environmentVariableRedaction`"),
        (
            {"hooks": {"BeforeTool": [{"matcher": "x", **GATE["BeforeTool"][0]}]}},
            {},
            "not installed",
        ),
        (
            json.loads(json.dumps({"hooks": GATE}).replace("GEMINI_CLI_REKINDLE", "REKINDLE")),
            {},
            "not installed",
        ),
    ],
)
def test_settings_that_keep_gemini_cli_from_running_the_gate_are_found(user, project, words):
    """The agent could have written those in its own folder."""
    assert words in find_obstacle(user, json.dumps(project))


@pytest.mark.parametrize(
    "text", ['{"a": 1,,}', "\ufeff{}", "[]", "null", '{"a": 1', "{\r}", "[" * 100_000]
)
def test_settings_that_gemini_cli_could_read_differently_are_an_obstacle(text):
    """For Gemini CLI, a carriage return does not end a comment."""
    assert "cannot be read" in find_obstacle({"hooks": GATE}, text)


@pytest.mark.parametrize("text", ["", "{}", '{\r\n"security": {}, "ui": {}}\n'])
def test_other_settings_of_gemini_cli_are_no_obstacle_for_the_gate(text):
    assert find_obstacle({"hooks": GATE, "security": {"auth": {}}}, text, {"SURFACE": "x"}) == ""


@pytest.mark.parametrize("variable", [{"GITHUB_SHA": "0"}, {"SURFACE": "Github"}])
def test_a_variable_that_hides_others_from_the_gate_is_an_obstacle(variable):
    assert next(iter(variable)) in find_obstacle({"hooks": GATE}, "", variable)


def test_a_persona_without_rules_has_no_gate():
    made = claude_harness.command(ask())
    assert set(made.files) == {"hooks.json"}
    assert set(json.loads(made.files["hooks.json"])) == {"hooks"}


@pytest.mark.parametrize("rule", ["Edit(/etc)", "Bash(a\nb)", "Bash(", "", "(x)", "Bash,Read"])
def test_a_rule_that_the_gate_cannot_compare_is_refused(rule):
    with pytest.raises(UnenforceableError) as caught:
        claude_harness.command(ask(rule))
    assert "whole tools such as `WebFetch`" in caught.value.hint
