"""The bridge runs one turn of an agent, and prints its own lines."""

import contextlib
import hashlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from acp_stage import SESSION, ask, call, end_group, say
from rekindle.harnesses.acp import acp_bridge
from rekindle.harnesses.acp.acp_bridge import AcpBridge
from rekindle.harnesses.acp.agent_link import ENDED, AgentLink
from rekindle.thresholds.bridge_limits import ACP_QUEUED_MESSAGES

RESUMED = f"--session={SESSION}"
LATER = {"sessionUpdate": "usage_update", "used": 900, "size": 1000}


def find(lines, kind):
    return [line for line in lines if line["type"] == kind]


def is_running(pid):
    """Tell whether a process exists and is not a zombie."""
    with contextlib.suppress(OSError):
        return read_stat(pid)[0] != "Z"
    return False


def read_stat(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def await_end(pid):
    deadline = time.monotonic() + 120
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not is_running(pid)


def test_a_turn_is_printed_in_our_own_lines(stage):
    """Pieces of text become whole lines, and a tool call has its persona's name."""
    used = {"sessionUpdate": "usage_update", "used": 900, "size": 1000}
    cost = {"cost": {"amount": 0.25, "currency": "USD"}}
    steps = [say("Hel"), say("lo\nWor"), say("ld"), *call(rawInput={"command": "ls"})]
    model = {"category": "model", "currentValue": "gpt-5.5"}
    turn = [*steps, {"update": {**used, **cost}}, say("It is done.")]
    stage.script(turn, new={"configOptions": [{"category": "mode"}, model]})
    opened, *middle, ended = stage.run()
    assert opened == {
        "type": "opened",
        "session": SESSION,
        "how": "new",
        "model": "gpt-5.5",
        "agent": "Double",
        "version": "1.2",
    }
    assert middle == [
        {"type": "said", "text": "Hello"},
        {"type": "said", "text": "World"},
        {"type": "called", "id": "c1", "tool": "Bash", "arguments": {"command": "ls"}},
        {"type": "returned", "id": "c1", "ok": True, "refused": False},
        {"type": "used", "tokens": 900, "window": 1000, "usd": 0.25, "model": "gpt-5.5"},
        {"type": "said", "text": "It is done."},
    ]
    assert ended == {
        "type": "ended",
        "stop": "end_turn",
        "calls": 1,
        "closing": "It is done.",
        "spoke": True,
        "rejected": False,
        "usd": 0.25,
        "model": "gpt-5.5",
        "context": 900,
        "usage": None,
        "failure": None,
    }
    assert stage.code == 0
    assert stage.journal()[-1] == "end of input"
    first = stage.journal()[0]["params"]
    assert first["protocolVersion"] == 1
    assert not {"fs", "terminal"} & first["clientCapabilities"].keys()


@pytest.mark.parametrize(("resume", "how"), [(True, "resume"), (False, "load")])
def test_a_session_is_resumed_or_loaded_without_its_old_conversation(stage, resume, how):
    """Resume is preferred, and what load repeats is not printed."""
    old = {"cost": {"amount": 2.0, "currency": "USD"}}
    new = {"cost": {"amount": 2.5, "currency": "USD"}}
    turns = [say("first")], [say("second"), {"update": {**LATER, **new}}]
    stage.script(*turns, resume=resume, replayed=[{**LATER, **old}])
    stage.run()
    opened, *lines, ended = stage.run(RESUMED, "--spent=2.0")
    assert (opened["how"], opened["session"]) == (how, SESSION)
    assert find(lines, "said") == [{"type": "said", "text": "second"}]
    assert [line["usd"] for line in find(lines, "used")] == [0.5]
    assert ended["usd"] == 0.5


def test_a_method_that_is_only_advertised_is_replaced_by_load(stage):
    missing = {"code": -32601, "message": "Method not found"}
    stage.script([say("x")], resume=True, **{"session/resume": missing})
    stage.run()
    assert stage.run(RESUMED)[0]["how"] == "load"


@pytest.mark.parametrize("load", [True, False])
def test_a_session_that_cannot_be_resumed_is_reported(stage, load):
    stage.script([say("x")], load=load)
    (ended,) = stage.run("--session=ses_9999999999999")
    assert (ended["method"], ended["error"]["message"]) == (
        "session/load",
        "Resource not found" if load else "it can neither load nor resume a session",
    )
    assert stage.code == 1


def test_another_version_of_the_protocol_is_rejected(stage):
    stage.script([say("x")])
    script = json.loads((stage.folder / "script.json").read_text())
    script["initialize"]["protocolVersion"] = 2
    (stage.folder / "script.json").write_text(json.dumps(script))
    (ended,) = stage.run()
    assert ended["method"] == "initialize"
    assert "version 2" in ended["error"]["message"]
    assert stage.sent() == ["initialize"]


def test_an_error_is_printed_with_its_data(stage):
    error = {"code": -32603, "message": "limit", "data": {"errorKind": "rate_limit"}}
    stage.script([{"error": error}])
    ended = stage.run()[-1]
    assert (ended["error"], ended["method"], stage.code) == (error, "session/prompt", 1)


def test_a_failure_that_an_adapter_reports_is_printed(stage):
    failure = {"category": "limit", "title": "Usage limit reached"}
    meta = {"jetbrains": {"air": {"sessionFailure": failure}}}
    stage.script([{"answer": {"stopReason": "end_turn", "usage": None, "_meta": meta}}])
    assert stage.run()[-1]["failure"] == failure


@pytest.mark.parametrize(("code", "expected"), [(3, 3), (0, 1), (-signal.SIGKILL, 137)])
def test_an_agent_that_exits_in_its_turn_gives_the_bridge_its_code(stage, code, expected):
    stage.script([say("x"), {"exit": code}])
    ended = stage.run()[-1]
    assert (ended["method"], stage.code) == ("exit", expected)


def test_a_program_that_is_missing_is_reported(stage):
    stage.agent = ("/nowhere/agent",)
    assert stage.run() == []
    assert stage.code == 127
    assert b"/nowhere/agent: No such file or directory" in stage.errors


def test_a_program_that_repeats_its_input_is_reported(stage):
    stage.agent = ("cat",)
    (ended,) = stage.run()
    assert (ended["method"], stage.code) == ("initialize", 1)
    assert "repeats what it reads: does its command" in ended["error"]["message"]


def test_a_program_that_does_not_answer_is_reported(monkeypatch, capfd):
    monkeypatch.setattr(acp_bridge, "ACP_START_SECONDS", 0.1)
    assert AcpBridge(["sh", "-c", "cat > /dev/null"], {}, {}).run("do it") == 1
    ended = json.loads(capfd.readouterr().out)
    assert ended["method"] == "initialize"
    assert "did not answer" in ended["error"]["message"]


def test_an_agent_that_sends_too_much_waits(tmp_path):
    """The messages of an agent are not kept in memory, and it can still be ended."""
    count = 10 * ACP_QUEUED_MESSAGES
    code = f"for n in range({count}): print('{{\"id\": %d}}' % n, flush=True)\ninput()"
    link = AgentLink([sys.executable, "-c", code])
    first = link.take(120)
    assert first == {"id": 0}
    assert link.messages.qsize() <= ACP_QUEUED_MESSAGES + 1
    assert [link.take(120)["id"] for _ in range(count - 1)] == list(range(1, count))
    assert link.take(120 if link.close() else 0) is ENDED


def test_other_output_and_requests_are_refused(stage):
    """Lines that are not messages are ignored, and no file is read for the agent."""
    read = {"jsonrpc": "2.0", "id": "r", "method": "fs/read_text_file", "params": {}}
    lines = ["a banner", "[1]", json.dumps(read), "[" * 100_000]
    stage.script([*({"print": line} for line in lines), say("x")])
    assert find(stage.run(), "said") == [{"type": "said", "text": "x"}]
    refused = [entry for entry in stage.journal() if entry != "end of input" and "error" in entry]
    assert refused[0]["error"]["code"] == -32601


def test_a_permitted_call_gets_only_one_permission(stage):
    """The bridge never chooses an option that permits more than this call."""
    stage.rules |= {"allowed": [["Bash", ""]]}
    start, end = call(rawInput={"command": "ls"})
    stage.script([start, ask(), end])
    decided = find(stage.run(), "decided")
    assert [line["decision"] for line in decided] == ["allow"]
    assert {"answered": {"outcome": "selected", "optionId": "yes-1"}} in stage.journal()


def test_a_rejected_call_is_reported_as_refused(stage):
    """Vibe names the command only when the call starts, and not in its request."""
    stage.rules |= {"allowed": [["Bash", ""]], "deny": [["Bash", "git push"]]}
    start, end = call(rawInput={"command": "git push"}, status="failed")
    stage.script([start, ask(), end])
    lines = stage.run()
    assert [line["decision"] for line in find(lines, "decided")] == ["reject"]
    assert find(lines, "returned") == [
        {"type": "returned", "id": "c1", "ok": False, "refused": True}
    ]
    (ended,) = find(lines, "ended")
    assert (ended["calls"], ended["rejected"]) == (0, True)
    assert {"answered": {"outcome": "selected", "optionId": "no-1"}} in stage.journal()


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_a_call_waits_for_a_person_like_at_the_gate(stage, decision):
    """The request and the decision are the gate's files, so the same question is asked."""
    stage.rules |= {"ask": [["Bash", "git push"]], "allowed": [["Bash", ""]], "seconds": 100}
    stage.environment = {"REKINDLE_LAUNCH": "l1"}
    start, end = call(rawInput={"command": "git push"})
    stage.script([start, ask(), end])
    seen = []

    def decide():
        deadline = time.monotonic() + 120
        while not (found := list(stage.folder.glob("ask-l1-*"))) and time.monotonic() < deadline:
            time.sleep(0.01)
        _, held, _ = found[0].read_bytes().split(b"\n")
        seen.append(json.loads(held))
        answer = stage.folder / found[0].name.replace("ask-", "answer-")
        partial = stage.folder / "partial"
        partial.write_text(f"{decision} {hashlib.sha256(held).hexdigest()}\nbecause")
        partial.rename(answer)

    person = threading.Thread(target=decide)
    person.start()
    lines = stage.run()
    person.join()
    wanted = "allow" if decision == "allow" else "reject"
    assert [line["decision"] for line in find(lines, "decided")] == ["ask", wanted]
    assert seen == [
        {"arguments": {"command": "git push"}, "cwd": str(stage.folder), "tool": "Bash"}
    ]


@pytest.mark.parametrize("environment", [{"REKINDLE_LAUNCH": "l1"}, {}])
def test_a_call_without_a_decision_is_rejected(stage, environment):
    """This also holds if there is no supervisor that could ask a person."""
    stage.environment = environment
    stage.script([*call(rawInput={"command": "ls"})[:1], ask(), say("x")])
    decided = find(stage.run(), "decided")
    assert [line["decision"] for line in decided] == ["ask", "reject"]


def test_the_mode_and_model_are_chosen_among_those_offered(stage):
    groups = [{"options": [{"value": "big"}]}, {"value": "small"}]
    model = {"id": "m", "category": "model", "options": groups}
    modes = {"availableModes": [{"id": "default"}, {"id": "yolo"}]}
    stage.script([say("x")], new={"configOptions": [model], "modes": modes})
    ended = stage.run("--model=big", "--mode=default")[-1]
    assert (ended["stop"], ended["model"]) == ("end_turn", "big")
    assert stage.sent()[2:4] == ["session/set_config_option", "session/set_mode"]
    refused = stage.run("--mode=ask")[-1]
    assert refused["error"]["message"] == "it does not offer the mode 'ask'"
    assert stage.code == 1


@pytest.mark.parametrize(
    ("answer", "model"),
    [
        ({"models": {"currentModelId": "a"}}, "a"),
        ({"configOptions": [{"category": "model", "currentValue": "b"}]}, "b"),
        ({"configOptions": [{"category": "mode", "currentValue": "c"}]}, ""),
        ({"configOptions": 3, "models": []}, ""),
        ({"models": {"currentModelId": 3}}, ""),
    ],
)
def test_the_model_is_read_from_the_agent_s_options(answer, model):
    assert acp_bridge.find_model(answer) == model


def test_instructions_come_before_the_prompt(stage):
    (stage.folder / "own.md").write_text("Be brief.")
    stage.script([say("x")])
    stage.run(f"--instructions={stage.folder}/own.md", prompt="Go.")
    (sent,) = [one for one in stage.journal() if "session/prompt" in str(one)]
    assert sent["params"]["prompt"] == [{"type": "text", "text": "Be brief.\n\nGo."}]


def test_a_stop_cancels_the_turn_and_closes_the_input_before_any_signal(stage):
    stage.script([say("x"), {"silent": 1}])
    child = stage.start()
    stage.await_entry(lambda entry: entry == "silent")
    os.killpg(child.pid, signal.SIGTERM)
    out, _ = child.communicate(timeout=120)
    assert json.loads(out.splitlines()[-1])["stop"] == "cancelled"
    assert child.returncode == 128 + signal.SIGTERM
    assert [entry for entry in stage.journal() if entry in ("end of input", "SIGTERM")] == [
        "end of input"
    ]
    assert stage.sent()[-1] == "session/cancel"


def test_an_agent_that_ignores_the_end_of_its_input_is_signalled(stage):
    stage.script([say("x")], deaf=True)
    stage.run()
    assert stage.journal()[-2:] == ["end of input", "SIGTERM"]


def test_the_agent_exits_if_the_bridge_is_killed(stage):
    """Nothing but the end of its input tells the agent, which is in another process group."""
    stage.script([{"tool": ["sleep", "1000"]}])
    child = stage.start()
    tool = stage.await_entry(lambda entry: "tool" in entry)["tool"]
    agent = int(read_stat(tool)[1])
    try:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate(timeout=120)
        stage.await_entry(lambda entry: entry == "end of input")
        assert await_end(agent)
    finally:
        end_group(tool)


def test_a_session_continues_after_kill_9_inside_a_tool(stage):
    """The agent has stored the prompt, so the next turn is the second one of the session."""
    stage.script([{"tool": ["sleep", "1000"]}], [say("second")])
    child = stage.start()
    tool = stage.await_entry(lambda entry: "tool" in entry)["tool"]
    try:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate(timeout=120)
        assert find(stage.run(RESUMED), "said") == [{"type": "said", "text": "second"}]
    finally:
        assert end_group(tool)  # the supervisor sweeps such tools by their launch's mark
