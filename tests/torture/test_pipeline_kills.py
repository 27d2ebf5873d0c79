"""kill -9 of the coordinator, supervisors and workers of a run: each item is done exactly once.

CI plays a few kills with few workers; `just torture` plays 50 kills with 64 workers.
"""

import collections
import json
import os
import random
import signal
import sys
import time
from functools import partial
from typing import Any, Final

import pytest

from e2e.pipeline_project import WATCH, PipelineProject, PipelineRun
from loopback.place import Started
from sampling import WHOLE

pytestmark = [pytest.mark.torture, pytest.mark.timeout(3600)]

WORKERS: Final = 64 if WHOLE else 10
KILLS: Final = 50 if WHOLE else 6
SEED: Final = int(os.environ.get("REKINDLE_SEED", "20261117"))
KINDS: Final = ["coordinator", "supervisor", "worker"]
LIFE: Final = 0.6
"""Seconds for which a worker lives at least."""
WORKER: Final = """\
import fcntl, os, pathlib, re, sys, time
notes, agent = pathlib.Path(sys.argv[1]), os.environ["REKINDLE_AGENT"]
item = re.search("^Build ([0-9]+)$", sys.stdin.read(), re.MULTILINE)[1]
alone = open(notes / f"{agent}.lock", "w")
try:
    fcntl.flock(alone, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError:
    (notes / f"{agent}.fault").touch()
time.sleep(LIFE / 2)  # time in which it can be killed
pathlib.Path(f"half-{item}.txt").write_text("half\\n")
time.sleep(LIFE / 2)
pathlib.Path(f"built-{item}.txt").write_text(f"{item}\\n")
os.unlink(f"half-{item}.txt")
pathlib.Path("report.md").write_text(f"report {item}\\n")
""".replace("LIFE", str(LIFE))
PIPELINE: Final = f"""\
  ship:
    steps:
      - id: list
        run: [sh, -c, "echo '{[*range(WORKERS)]}' > items.json"]
        outputs: {{items: items.json}}
      - id: build
        depends_on: [list]
        persona: worker
        prompt: Build {{{{ item }}}}
        outputs: {{report: report.md}}
        handover: {{contract: {{type: test_suite, command: [grep, -q, report, report.md]}}}}
        strategy: {{matrix: {{from: list.items, max_concurrency: 8}}}}
      - {{id: count, depends_on: [build], run: [sh, -c, "ls | grep -c built > count.txt"]}}
runtime: {{restart: {{cooldown: 0s, max_crashes: 1000}}}}
"""


@pytest.fixture
def project(place, in_memory):
    project = PipelineProject(place, in_memory / "pipelines")
    notes = project.path.parent / "notes"
    notes.mkdir()
    project.write(PIPELINE, {"worker.py": WORKER})
    command = f"[{sys.executable}, -IS, worker.py, {notes}]"
    persona = f"  worker: {{adapter: command, command: {command}, sandbox: off}}\n"
    manifest = project.path / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace("personas:\n", f"personas:\n{persona}"))
    project.git("commit", "-qam", "with a worker")
    return project


def list_victims(project: PipelineProject, daemon: Started, kind: str) -> list[int]:
    """Return the processes of a kind."""
    victims = collections.defaultdict(list)
    for pid, argv in project.place.living().items():
        if "worker.py" in argv:
            victims["worker"].append(pid)
        elif {"rekindle", "run"} <= set(argv):
            victims["supervisor"].append(pid)
        elif "ship" in argv and pid != daemon.pid:
            victims["coordinator"].append(pid)
    return victims[kind]


def kill_at_random(project: PipelineProject, run: PipelineRun, usual: float) -> dict[str, int]:
    """Kill processes of a run while it works. Return how many of each kind were alive.

    The kind is drawn first, because workers live for a moment only and would never be chosen.
    """
    rng = random.Random(SEED)
    daemon = project.start_program(WATCH, "--forever")
    hits: collections.Counter[str] = collections.Counter()
    for kind in [*rng.sample(KINDS, len(KINDS)), *rng.choices(KINDS, k=KILLS - len(KINDS))]:
        find = partial(list_victims, project, daemon, kind)
        # The moment of the kill is the fault, not a way to wait for something.
        time.sleep(rng.uniform(0, usual / KILLS))
        victims = list[int]()
        while not victims and run.state.ended is None:
            project.place.wait_for(lambda find=find: bool(find()) or run.state.ended is not None)
            time.sleep(rng.uniform(0, LIFE))
            victims = find()
        if victims:
            project.place.signal(rng.choice(victims), signal.SIGKILL)
            hits[kind] += 1
    run.wait("done", 1800)
    daemon.signal(signal.SIGTERM)
    daemon.wait()
    return dict(hits)


def list_commands(project: PipelineProject, agent: str) -> list[dict[str, Any]]:
    """Return the commands to run that a worker's agent received."""
    log = project.path / ".rekindle/agents" / agent / "ops.jsonl"
    events = map(json.loads, log.read_text().splitlines())
    return [
        event
        for event in events
        if event["kind"] == "desired.set" and event["desired"] == "running"
    ]


def test_each_item_is_done_once_although_processes_are_killed(project):
    began = time.monotonic()
    undisturbed = project.run()
    usual = time.monotonic() - began
    run = project.start()
    hits = kill_at_random(project, run, usual)
    seconds = time.monotonic() - began - usual
    print(f"{WORKERS} workers: {usual:.0f} s; with {hits} killed, seed {SEED}: {seconds:.0f} s")
    assert sum(hits.values()) >= KILLS / 2, "the kills hit nothing"
    assert hits.keys() == set(KINDS), "a kind of process was never hit"
    expected = {f"built-{item}.txt": f"{item}\n" for item in range(WORKERS)}
    assert run.list_files() == {**expected, "count.txt": f"{WORKERS}\n"}
    trees = [project.git("rev-parse", f"{each.branch}^{{tree}}") for each in (undisturbed, run)]
    assert trees[0] == trees[1]
    starts = [
        (event["step"], event.get("worker"), event["attempt"])
        for event in run.list_events("worker.began")
    ]
    assert len(starts) == len(set(starts)) == WORKERS + 2, "an attempt began twice"
    assert {worker.attempt for worker in run.state.workers.values()} == {1}, run.describe()
    for agent in run.find_agents().values():
        assert len(list_commands(project, agent)) == 1, agent
    assert [*project.path.parent.glob("notes/*.fault")] == [], "a worker ran twice at once"
    reports = run.folder.outputs / "build/report"
    assert {path.read_text() for path in reports.iterdir()} == {
        f"report {item}\n" for item in range(WORKERS)
    }
    assert project.git("status", "--porcelain") == ""
    # A coordinator that is killed may leave a commit that it had no time to use.
    assert project.git("fsck", "--no-dangling") == ""
    project.place.wait_for(lambda: not project.list_rekindle(), 60)
