"""The real CLIs on a fleet's hosts, in the sandbox there: contract, revival, handoffs and hangs."""

import contextlib
import json
import signal
import time
from dataclasses import replace
from datetime import datetime
from itertools import groupby
from pathlib import Path

import pytest

import prerequisites
from e2e.handing import MARK
from e2e.sandbox import BANNER, TASK
from fleet.host_clis import AGENT, OTHERS, HostedCli
from loopback import anthropic, gemini, openai
from loopback.fixtures import require_namespaces
from loopback.script import Fail, Forever, Hang, Text
from rekindle.stores.folders.private_files import find_private_project
from rekindle.system.sandbox import probe
from sampling import in_ci

pytestmark = [pytest.mark.torture, pytest.mark.timeout(300)]

KINDS = ("claude", "codex", "gemini")
SILENCE = {"claude": "4s", "codex": "4s", "gemini": "30s"}
"""Silence that counts as a hang; Gemini CLI is silent while it starts."""


def wait_for_call(found, host, name):
    """Wait until a call runs on a host, which shows that the CLI is in a sandbox there."""
    found.wait_for((host.work / f"began-{name}").exists)
    assert any(Path(argv[0]).name == "bwrap" for argv in host.list_launched())


def select(events, kind):
    return [one for one in events if one["kind"] == kind]


def list_exits(events):
    return [one["exit"] for one in select(events, "launch.ended")]


def list_tools(host):
    """Return the running calls."""
    return [argv for argv in host.list_launched() if "step.py" in " ".join(argv)]


def read_work(host):
    """Return the names of all completed calls, in their order."""
    return (host.work / "worked").read_text()


# The contract of a harness

LOOK = """\
import json, os, pathlib
home = pathlib.Path.home()
seen = {"environment": dict(os.environ), "secret": (home / "secret").exists()}
pathlib.Path("seen.json").write_text(json.dumps(seen))
"""
KEYS = {"claude": "ANTHROPIC_API_KEY", "codex": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY"}


def check_contract(found):
    """It gets its prompt and its own key; its hooks, usage and transcript are recorded once."""
    found.begin(sandbox=None)  # the default on a host
    host = found.hosts["x"]
    (host.cli.home / "secret").touch()
    found.play(
        found.shell("python3", "-c", LOOK), found.call(1, 20), Text("all done", found.filled(21))
    )
    found.run()
    events = found.wait_until_over()
    (started,), (ended,) = select(events, "launch.started"), select(events, "launch.ended")
    assert (started["harness"], ended["exit"]) == (found.words.HARNESS, "clean")
    (opened,), (prompt,) = select(events, "session.started"), select(events, "prompt.submitted")
    session = opened["session"]
    assert {one["session"] for one in (prompt, ended)} == {session}
    assert (opened["launch"], opened["source"]) == (started["launch"], "startup")
    assert len(select(events, "heartbeat")) == 2
    assert len(select(events, "session.ended")) == 1
    assert TASK.strip() in prompt["text"]
    assert found.model.log.main[0].text.count(TASK.strip()) == 1
    transcript = Path(opened["transcript"])
    assert transcript == host.cli.transcript(session)
    assert "all done" in transcript.read_text()
    assert (ended["tokens"], ended["window"]) == (
        -(-21 * found.words.window // 100),
        found.words.window,
    )
    assert ended["known"] == ("estimated" if found.kind == "gemini" else "reported")
    seen = json.loads((host.work / "seen.json").read_text())
    assert not seen["secret"]
    assert seen["environment"][KEYS[found.kind]]
    assert not {*OTHERS, *KEYS.values()} - {KEYS[found.kind]} & set(seen["environment"])


def check_permissions(found):
    """The rules of the persona apply on a host too."""
    found.begin(permissions={"deny": ["Bash"]})
    found.play(found.call(1), Text("all done"))
    found.run()
    assert list_exits(found.wait_until_over()) == ["clean"]
    assert not (found.hosts["x"].work / "began-1").exists()
    assert len(found.model.log.main) == 2, "the call was not refused"


def check_stop(found):
    """`rekindle stop` ends the CLI on its host, and `rekindle run` resumes the same session."""
    found.begin()
    host = found.hosts["x"]
    found.play(found.call(1), found.call(2, seconds=600), found.call(3), Text("all done"))
    found.run()
    wait_for_call(found, host, 2)
    found.operate("stop", AGENT)
    found.wait_for(lambda: list_exits(found.events()) == ["interrupted"])
    found.wait_for(lambda: not host.list_launched())
    found.run()
    events = found.wait_until_over()
    assert list_exits(events) == ["interrupted", "clean"]
    assert_same_session(found, events)
    assert read_work(host) == "13"


def assert_same_session(found, events):
    """Check that all launches after the first one resumed its session, on the same host."""
    started = select(events, "launch.started")
    assert [one.get("resumes", False) for one in started] == [False] + [True] * (len(started) - 1)
    assert len({one["session"] for one in select(events, "launch.ended")}) == 1
    assert found.model.log.main[0].prompts[0] in found.model.log.main[-1].text
    assert BANNER not in found.model.log.main[-1].text
    assert len(select(events, "owner.changed")) == 1


RESET_SECONDS = 6


def make_limit(kind):
    """Return a usage limit that ends in some seconds, in the words of each API."""
    match kind:
        case "claude":
            words = f"Claude usage limit reached|{int(time.time() + RESET_SECONDS)}"
            return replace(anthropic.RATE_LIMITED, message=words)
        case "codex":
            words = f"Rate limit reached for this model. Please try again in {RESET_SECONDS}s."
            return replace(openai.RATE_LIMITED, status=openai.IN_STREAM, message=words)
    return gemini.out_of_quota(RESET_SECONDS, "GenerateRequestsPerMinutePerProject")


FAILURES: dict[str, tuple[Fail, Fail]] = {
    "claude": (anthropic.OVERLOADED, anthropic.UNAUTHORIZED),
    "codex": (openai.OVERLOADED, openai.UNAUTHORIZED),
    "gemini": (gemini.OVERLOADED, gemini.UNAUTHORIZED),
}


def check_failures(found):
    """An overload is retried, a limit is waited out, and a wrong key waits for a person."""
    found.begin()
    overload, refusal = FAILURES[found.kind]

    def wait_for_exit(wanted):
        found.wait_for(lambda: wanted in list_exits(found.events()))

    found.play(found.call(1), Forever(overload))
    found.run()
    wait_for_exit("overload")
    found.play(Forever(make_limit(found.kind)))
    wait_for_exit("limit")
    found.play(Forever(refusal))
    wait_for_exit("auth")
    (question,) = found.wait_for(lambda: select(found.events(), "question.asked"))
    found.play(found.call(2), Text("all done"))
    found.operate("answer", question["question"], "retry")
    events = found.wait_until_over()
    exits = [kind for kind, _ in groupby(list_exits(events))]
    assert exits == ["overload", "limit", "auth", "clean"]
    limited = next(one for one in select(events, "launch.ended") if one["exit"] == "limit")
    following = [one for one in select(events, "launch.started") if one["seq"] > limited["seq"]]
    assert limited["resets_at"] <= datetime.fromisoformat(following[0]["ts"]).timestamp()
    assert_same_session(found, events)
    assert read_work(found.hosts["x"]) == "12"


# Revival and hangs


def check_killed_and_hung_cli(found):
    """The session resumes after `kill -9` in a tool call, and after a model that never answers."""
    found.begin(runtime={"watch": {"silence": SILENCE[found.kind], "every": "0.5s"}})
    host = found.hosts["x"]
    silent = Hang(Text("too late"))
    found.play(found.call(1), found.call(2, seconds=600), silent, found.call(3), Text("all done"))
    found.run()
    wait_for_call(found, host, 2)
    assert list_tools(host)
    host.signal(host.find_cli(found.kind), signal.SIGKILL)
    found.wait_for_request(silent)
    assert not list_tools(host)
    events = found.wait_until_over()
    silent.release.set()
    (noticed,) = select(events, "hang.detected")
    assert noticed["ended"]
    assert list_exits(events) == ["crash", "hang", "clean"]
    assert_same_session(found, events)
    assert read_work(host) == "13"


def check_killed_worker(found):
    """The killed worker leaves nothing running, and finished cycles are not repeated."""
    found.begin(hosts=("x", "y"), heartbeat="10s", cycles=2, until=["test", "-e", "ended-3"])
    found.play(
        found.call(1),
        Text("the first cycle is done"),
        found.call(2, seconds=600),
        found.call(3),
        Text("all done"),
    )
    found.run()
    owner = found.wait_for(lambda: select(found.events(), "owner.changed"))[0]["host"]
    first = found.hosts.pop(owner)
    (second,) = found.hosts.values()
    wait_for_call(found, first, 2)
    first.kill_worker()
    found.wait_for(lambda: not first.list_launched(), 20)
    events = found.wait_until_over()
    assert [one["host"] for one in select(events, "owner.changed")] == [owner, second.name]
    assert [one["cycle"] for one in select(events, "cycle.ended")] == [1, 2]
    assert list_exits(events) == ["clean", "lost", "clean"]
    assert read_work(second) == "13"
    assert first.list_launched() == []


# Handoffs


def check_full_window(found):
    """The session stops between two calls, and a fresh one begins with its checkpoint."""
    found.begin()
    host = found.hosts["x"]
    found.play(
        found.call(1, 20),
        found.call(2, 81),
        *[found.call("never", 82)] * found.words.REPLIES,
        found.call(3, 10),
        Text("all done", found.filled(11)),
    )
    found.run()
    events = found.wait_until_over()
    assert_handed_over(found, events, "threshold")
    assert read_work(host) == "123"


def assert_handed_over(found, events, by):
    assert list_exits(events) == ["handoff", "clean"]
    first, second = (one["session"] for one in select(events, "launch.ended"))
    assert first != second
    assert {one["cycle"] for one in select(events, "launch.started")} == {1}
    (triggered,), (resumed,) = (
        select(events, f"handoff.{name}") for name in ("triggered", "resumed")
    )
    assert (triggered["by"], resumed["count"]) == (by, 1)
    assert len(select(events, "checkpoint.committed")) == 1
    assert [MARK in one.text for one in found.words.openings] == [False, True]


def check_requested_handoff(found):
    """The command reaches the hook in the sandbox, which stops the session at its next boundary."""
    found.begin()
    host = found.hosts["x"]
    # Codex holds the next call back; the others stop after it.
    holds_back = bool(found.words.REPLIES)
    waits = Hang(found.call("never" if holds_back else 1, 20))
    found.play(waits, found.call(2, 10), Text("all done", found.filled(11)))
    found.run()
    found.wait_for_request(waits)
    found.wait_for(lambda: select(found.events(), "prompt.submitted"))  # its hooks have reported
    assert "will stop between two tool calls" in found.operate("handoff", AGENT)
    rules = find_private_project(host.work.parent).agent(AGENT).launch

    def has_rule():
        return any(b"\nlimit 0\n" in path.read_bytes() for path in rules.glob("brake-*"))

    found.wait_for(has_rule)
    waits.release.set()
    events = found.wait_until_over()
    assert_handed_over(found, events, "person")
    assert read_work(host) == ("2" if holds_back else "12")


def check_suspended_cli(found):
    """The supervisor sees through the sandbox that the CLI itself was suspended."""
    watch = {"silence": SILENCE[found.kind], "every": "0.5s"}
    found.begin(runtime={"watch": watch})
    host, waits = found.hosts["x"], Hang(found.call(1))
    found.play(waits, Text("all done"))
    found.run()
    found.wait_for_request(waits)
    pid = host.find_cli(found.kind)
    host.signal(pid, signal.SIGSTOP)
    (noticed,) = found.wait_for(lambda: select(found.events(), "hang.detected"))
    assert "was suspended" in noticed["words"]
    assert not noticed.get("ended")
    waits.release.set()
    host.signal(pid, signal.SIGCONT)
    events = found.wait_until_over()
    assert list_exits(events) == ["clean"]
    assert read_work(host) == "1"


CHECKS = (
    check_contract,
    check_permissions,
    check_stop,
    check_failures,
    check_killed_and_hung_cli,
    check_killed_worker,
    check_full_window,
    check_requested_handoff,
    check_suspended_cli,
)
CASES = [(check, kind) for check in CHECKS for kind in KINDS]
IN_CI = (
    (check_contract, "gemini"),
    (check_killed_and_hung_cli, "codex"),
    (check_full_window, "claude"),
)


@pytest.mark.parametrize(
    ("check", "kind"),
    in_ci(CASES, *map(CASES.index, IN_CI)),
    ids=lambda value: getattr(value, "__name__", value),
)
def test_a_real_cli_on_a_host(request, own_engine, tmp_path_factory, check, kind):
    """It works in the host's sandbox as without one, and nothing of it is left afterwards."""
    require_namespaces()
    obstacle = probe.find_obstacle()
    prerequisites.require(obstacle.words if obstacle else None)
    program = request.getfixturevalue(f"{kind}_program")
    folder = tmp_path_factory.mktemp("c")  # a short path, because it contains sockets
    with contextlib.ExitStack() as stack:
        found = HostedCli(kind, program, engine=own_engine, folder=folder, stack=stack)
        check(found)
        for host in found.hosts.values():
            found.wait_for(lambda host=host: not host.list_launched(), 20)
