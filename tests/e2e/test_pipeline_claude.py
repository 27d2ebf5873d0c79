"""Real Claude Code workers of a pipeline: handoffs, a kill and a usage limit."""

import json
import re
import signal
import time
from dataclasses import replace
from datetime import datetime

import pytest

from e2e.handing import HandingClaude
from e2e.pipeline_project import PipelineProject
from loopback.anthropic import RATE_LIMITED, Anthropic
from loopback.log import MAIN
from loopback.model import Model
from loopback.script import Forever, Text

pytestmark = pytest.mark.timeout(400)

LIMIT_SECONDS = 25
SETTINGS = json.dumps({"model": HandingClaude.MODEL})
BUILDER = """\
  builder:
    adapter: claude-code
    sandbox: off
    permissions: {allowed_tools: [Bash]}
"""


class PerItem(Anthropic):
    """The API with a conversation for each session about an item, which the prompt names."""

    def __init__(self):
        self._sessions = {}

    def classify(self, method, path, headers, body):
        kind = super().classify(method, path, headers, body)
        text = "\n".join(part.text for part in self.parts(body))
        item = re.search(r"Build item (\w+)", text)
        if kind != MAIN or item is None:
            return kind
        sessions = self._sessions.setdefault(item[1], {})
        # Processes that start at once in a new home make up different ids of the same device.
        session = json.loads(body["metadata"]["user_id"])["session_id"]
        number = sessions.setdefault(session, len(sessions) + 1)
        return f"item {item[1]}, session {number}"


@pytest.fixture
def model(network):
    with Model(PerItem(), network.listener) as served:
        yield served


@pytest.fixture
def project(claude, place):
    return PipelineProject(place, program=claude)


@pytest.fixture
def handing(claude, place, model):
    return HandingClaude(claude, place, model)


def write(project, pipelines):
    (project.path / ".claude").mkdir()
    project.write(
        f"{pipelines}runtime: {{relay: {{summarizer: mechanical}}}}\n",
        {".claude/settings.json": SETTINGS},
        BUILDER,
    )


def read_log(project, agent, kind):
    log = project.path / ".rekindle/agents" / agent / "ops.jsonl"
    events = map(json.loads, log.read_text().splitlines())
    return [event for event in events if event["kind"] == kind]


BUILDING = """\
  ship:
    steps:
      - id: list
        run: [sh, -c, "echo '[\\"a\\", \\"b\\", \\"c\\", \\"d\\"]' > items.json"]
        outputs: {items: items.json}
      - id: build
        depends_on: [list]
        persona: builder
        prompt: Build item {{ item }}
        handover: {compaction: {trigger: "token_limit_80%"}}
        strategy: {matrix: {from: list.items}}
"""


def test_four_workers_of_which_one_hands_off_twice_and_another_is_killed(project, handing, model):
    write(project, BUILDING)

    def call(command, share=0):
        return replace(handing.bash(command), usage=handing.filled(share))

    done = Text("all done", handing.filled(11))
    for number in (1, 2):
        full = Forever(call(f"echo full >> session-{number}.log", 81))
        model.play(call(f"echo {number} >> a.txt", 20), full, to=f"item a, session {number}")
    model.play(call("echo 3 >> a.txt", 20), done, to="item a, session 3")
    waiting = "echo $PPID > pid.tmp.log; mv pid.tmp.log pid.log; sleep 600"
    model.play(call(waiting, 20), call("echo b > b.txt", 21), done, to="item b, session 1")
    for item in ("c", "d"):
        model.play(call(f"echo {item} > {item}.txt", 20), done, to=f"item {item}, session 1")
    run = project.start()
    project.place.wait_for(lambda: run.has_file("ship-1-build-2", "pid.log"))
    pid = int((run.find_work("ship-1-build-2") / "pid.log").read_text())
    assert "claude" in project.place.living()[pid][0]
    project.place.signal(pid, signal.SIGKILL)
    run.wait("done")
    assert run.list_files() == {
        "a.txt": "1\n2\n3\n",
        "b.txt": "b\n",
        "c.txt": "c\n",
        "d.txt": "d\n",
    }
    handoffs, exits = {}, {}
    for (_, key), agent in run.find_agents().items():
        handoffs[key] = [event["count"] for event in read_log(project, agent, "handoff.resumed")]
        exits[key] = [event["exit"] for event in read_log(project, agent, "launch.ended")]
    assert handoffs == {"": [], "1": [1, 2], "2": [], "3": [], "4": []}
    assert exits.pop("1") == ["handoff", "handoff", "clean"]
    assert exits.pop("2") == ["crash", "clean"]
    assert {worker.attempt for worker in run.state.workers.values()} == {1}


LIMITED = """\
  ship:
    steps:
      - {id: first, persona: builder, prompt: Build item a}
      - {id: gate, run: [sh, -c, "while ! test -e GATE; do sleep 0.1; done"]}
      - {id: second, depends_on: [gate], persona: builder, prompt: Build item b}
      - {id: command, depends_on: [gate], run: "true"}
"""


def test_workers_of_a_cli_with_a_usage_limit_start_when_it_ends(project, model):
    gate = project.path.parent / "gate"
    write(project, LIMITED.replace("GATE", str(gate)))
    words = f"Claude usage limit reached|{int(time.time() + LIMIT_SECONDS)}"
    limit = replace(RATE_LIMITED, message=words)
    # Claude Code retries once by itself.
    model.play(limit, limit, Text("all done"), to="item a, session 1")
    run = project.start()
    [reported] = project.place.wait_for(
        lambda: [event for event in run.list_events("worker.reported") if "until" in event] or None
    )
    gate.touch()
    assert (reported["step"], reported["harness"]) == ("first", "claude-code")
    run.wait("done")
    parse = datetime.fromisoformat
    began = {event["step"]: parse(event["ts"]) for event in run.list_events("worker.began")}
    assert began["command"] < parse(reported["until"]) <= began["second"]
    assert run.state.workers["first", ""].attempt == 1
