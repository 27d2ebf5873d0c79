"""Runs of pipelines from start to end: matrices, outputs, checks, merges, stop and resume."""

import json
import shutil
import signal

import pytest

import prerequisites
from e2e.pipeline_project import PipelineProject

pytestmark = pytest.mark.timeout(400)

ITEMS = json.dumps([{"id": name} for name in ("alpha", "beta", "gamma")])


@pytest.fixture
def project(place, tmp_path):
    return PipelineProject(place, tmp_path / "pipelines")


SHIP = """\
  ship:
    input: required
    steps:
      - id: plan
        persona: sandboxed
        prompt: |
          Plan {{ input }}.
          $ cp template.json items.json
          $ echo planned > plan.txt
          $ echo secret > plan.log
        outputs: {items: items.json}
      - id: build
        depends_on: [plan]
        persona: sandboxed
        prompt: |
          $ cp {{ steps.plan.outputs.items }} copy-{{ item.id }}.json
          $ cp {{ steps.plan.diff }} plan-{{ item.id }}.diff
          $ cat ../ship-1-plan/plan.log > stolen-{{ item.id }}.txt 2> refused.log
          $ echo "report of {{ item.id }}" > report.md
        strategy: {matrix: {from: plan.items, key: id, max_concurrency: 3}}
        outputs: {report: report.md}
      - id: test
        depends_on: [build]
        run: cat plan.txt copy-alpha.json copy-beta.json copy-gamma.json
"""


def test_three_steps_with_a_matrix_give_a_branch_and_outputs(project):
    is_there = shutil.which("bwrap")
    prerequisites.require(None if is_there else "`sandbox: on` needs bubblewrap")
    project.write(SHIP, {"template.json": ITEMS})
    (project.path / "mine.txt").write_text("not committed\n")
    before = project.git("status", "--porcelain"), project.git("rev-parse", "HEAD")
    run = project.run(text="the parser")
    files = run.list_files()
    names = ("alpha", "beta", "gamma")
    assert files.pop("plan.txt") == "planned\n"
    assert [files.pop(f"copy-{name}.json") for name in names] == [ITEMS] * 3
    assert all("+planned" in files.pop(f"plan-{name}.diff") for name in names)
    stolen = [files.pop(f"stolen-{name}.txt") for name in names]
    assert stolen == [""] * 3, "a worker has read the folder of another one"
    assert files == {}, "outputs are not part of the result"
    reports = run.folder.outputs / "build/report"
    assert {path.name: path.read_text() for path in reports.iterdir()} == {
        f"{name}.md": f"report of {name}\n" for name in names
    }
    agents = run.find_agents()
    [prompt] = run.read_prompts(agents["plan", ""])
    assert "Plan the parser." in prompt
    assert "- items.json" in prompt
    work = run.find_work(agents["plan", ""])
    assert (work / "plan.log").read_text() == "secret\n"
    assert work.name == "ship-1-plan", "the workers looked into another folder"
    for name in names:
        refusal = (run.find_work(agents["build", name]) / "refused.log").read_text()
        assert "No such file" in refusal or "Permission denied" in refusal
    assert (project.git("status", "--porcelain"), project.git("rev-parse", "HEAD")) == before
    assert project.git("log", "-1", "--format=%an", run.branch) == "The User\n"
    assert project.git("fsck") == ""


CHECKED = """\
  ship:
    steps:
      - id: report
        prompt: |
          $ test -e tried.log && echo text > report.md
          $ touch tried.log report.md
        retry: {attempts: 2}
        handover: {contract: {type: non_empty_file, source: report.md}}
      - id: code
        prompt: |
          $ test -e tried.log && echo fixed > code.txt
          $ touch tried.log
        retry: {attempts: 2}
        handover:
          contract: {type: test_suite, command: [sh, -c, "grep fixed code.txt || exit 3"]}
      - {id: list, prompt: "$ echo '[]' > items.json", outputs: {items: items.json}}
      - id: nothing
        depends_on: [list]
        prompt: "$ echo {{ item }} > item.txt"
        strategy: {matrix: {from: list.items}}
      - id: after
        depends_on: [nothing]
        prompt: "$ echo 'diff: {{ steps.nothing.diff }}' > after.txt"
"""


def test_a_failed_check_is_repeated_with_the_reason(project):
    run = project.write(CHECKED).run()
    state = run.state
    assert {key: worker.attempt for key, worker in state.workers.items()} == {
        ("report", ""): 2,
        ("code", ""): 2,
        ("list", ""): 1,
        ("after", ""): 1,
    }
    for step, reason in {"report": "report.md is empty", "code": "exited with 3"}.items():
        first, second = run.read_prompts(f"ship-1-{step}")
        assert "attempt" not in first
        assert "This is attempt 2: the result of the last one failed a check." in second
        assert [line for line in second.splitlines() if line.startswith("| ") and reason in line]
    assert run.list_files() == {
        "report.md": "text\n",
        "code.txt": "fixed\n",
        "after.txt": "diff: none\n",
    }


FAILING = """\
  ship:
    steps:
      - id: never
        prompt: "$ touch report.md"
        retry: {attempts: 2}
        handover: {contract: {type: non_empty_file, source: report.md}}
      - {id: skipped, depends_on: [never], run: "true"}
      - {id: command, run: [sh, -c, "echo the output; exit 3"]}
      - {id: spare, run: "false", optional: true}
      - {id: next, depends_on: [spare], run: "touch next.txt"}
      - {id: list, prompt: "$ echo '[0, 600, 600]' > items.json", outputs: {items: items.json}}
      - id: fast
        depends_on: [list]
        prompt: "$ sleep {{ item }}"
        handover: {contract: {type: non_empty_file, source: missing.md}}
        strategy: {matrix: {from: list.items, fail_fast: true}}
      - id: late
        depends_on: [list]
        optional: true
        prompt: "$ sleep {{ item }}; echo {{ item }} > slept.log"
        strategy: {matrix: {from: list.items, key: seconds}}
"""


def test_steps_that_fail_end_the_run_or_not(project):
    run = project.write(FAILING).run(outcome="failed")
    [ended] = run.list_events("pipeline.ended")
    assert ended["why"] == "failed: never, command, fast"
    workers = run.state.workers
    assert {key: worker.status for key, worker in workers.items()} == {
        ("never", ""): "failed",
        ("command", ""): "failed",
        ("spare", ""): "failed",
        ("next", ""): "done",
        ("list", ""): "done",
        ("fast", "1"): "failed",
        ("fast", "2"): "stopped",
        ("fast", "3"): "stopped",
    }
    assert (workers["never", ""].attempt, workers["never", ""].failures) == (2, 2)
    assert "report.md is empty" in workers["never", ""].why
    assert "exited with 3" in workers["command", ""].why
    assert "the output" in workers["command", ""].why
    assert "missing.md" in workers["fast", "1"].why
    [items] = [event for event in run.list_events("items.found") if event["step"] == "late"]
    assert "seconds" in items["why"]
    project.place.wait_for(lambda: "600" not in str(project.place.processes()), 30)
    assert project.git("branch", "--list", run.branch) == ""


MERGER = """\
import re, subprocess, sys
git = ["git", "-c", "user.name=a", "-c", "user.email=a@localhost", "merge", "-q", "--no-edit"]
for commit in re.findall("git merge --no-edit ([0-9a-f]+)", sys.stdin.read()):
    subprocess.run([*git, "-X", "theirs", commit], check=True)
"""
CONFLICTING = """\
  ship:
    steps:
      - {id: list, prompt: "$ echo '[\\"x\\", \\"y\\"]' > items.json", outputs: {items: items.json}}
      - id: person
        depends_on: [list]
        prompt: "$ echo {{ item }} > person.txt; echo {{ item }} > person-{{ item }}.txt"
        strategy: {matrix: {from: list.items}}
      - id: drop
        depends_on: [list]
        prompt: "$ echo {{ item }} > drop.txt"
        strategy: {matrix: {from: list.items}}
        merge: {conflicts: drop}
      - id: agent
        depends_on: [list]
        prompt: "$ echo {{ item }} > agent.txt"
        strategy: {matrix: {from: list.items}}
        merge: {conflicts: agent, persona: merger}
"""


def test_conflicts_are_merged_by_a_person_or_an_agent_or_dropped(project):
    project.write(CONFLICTING, {"merger.py": MERGER})
    text = (project.path / "rekindle.yaml").read_text()
    merger = text.splitlines()[2].replace("default", "merger").replace("agent.py", "merger.py")
    (project.path / "rekindle.yaml").write_text(
        text.replace("personas:\n", f"personas:\n{merger}\n")
    )
    run = project.start()
    asked = project.place.wait_for(lambda: run.list_events("person.asked") or None)
    assert [event["step"] for event in asked] == ["person"]
    assert run.state.merges["person", "workers"].conflicts == ("2",)
    theirs = run.state.workers["person", "2"].commit
    branch = f"{run.branch}-person"
    assert run.state.ended is None
    other = project.path.parent / "other"
    project.git("worktree", "add", "-q", str(other), branch)
    merge = ("-c", "user.name=p", "-c", "user.email=p@localhost", "merge", "-q", "-X", "theirs")
    project.git("-C", str(other), *merge, theirs)
    run.wait("done")
    project.git("worktree", "remove", "--force", str(other))
    project.git("branch", "-qD", branch)
    project.git("gc", "-q", "--prune=now")
    assert run.list_files() == {
        "person.txt": "y\n",
        "person-x.txt": "x\n",
        "person-y.txt": "y\n",
        "drop.txt": "x\n",
        "agent.txt": "y\n",
    }
    merges = run.state.merges
    assert merges["drop", "workers"].dropped == ("2",)
    assert merges["agent", "workers"].commit == run.state.workers["agent", "_merge"].commit
    for (step, stage), merge in merges.items():
        ref = f"refs/rekindle/pipelines/ship/1/{step or '_run'}/{stage}"
        assert project.git("rev-parse", ref).strip() == merge.commit, "git may remove it"


WAITING = """\
  ship:
    steps:
      - {id: list, prompt: "$ echo '[1, 2]' > items.json", outputs: {items: items.json}}
      - id: build
        depends_on: [list]
        prompt: |
          $ touch began.log
          $ while ! test -e GATE; do sleep 0.1; done
          $ echo {{ item }} > built-{{ item }}.txt
        strategy: {matrix: {from: list.items}}
      - id: check
        prompt: "$ true"
        handover:
          contract: {type: test_suite, command: [sh, -c, "touch began.log; GATED"]}
"""
GATED = "while ! test -e GATE; do sleep 0.1; done"


def test_a_stopped_run_continues_where_it_was(project):
    gate = project.path.parent / "gate"
    text = WAITING.replace("GATED", GATED).replace("GATE", str(gate))
    run = project.write(text).start()
    waiting = [("build", "1"), ("build", "2"), ("check", "")]

    def are_working():
        agents = run.find_agents()
        return all(key in agents and run.has_file(agents[key], "began.log") for key in waiting)

    project.place.wait_for(are_working)
    run.stop()
    run.wait("stopped")
    project.place.wait_for(lambda: not project.list_rekindle(), 30)
    assert "began.log" not in str(project.place.processes())
    gate.touch()
    run.resume()
    state = run.wait("done")
    assert state.workers["list", ""].attempt == 1
    for key in waiting:
        assert state.workers[key].attempt == 2
        assert state.workers[key].failures == 0
        second = run.read_prompts(state.workers[key].agent)[1]
        assert "This is attempt 2: the last one was interrupted." in second
    assert run.list_files() == {"built-1.txt": "1\n", "built-2.txt": "2\n"}


def test_a_run_waits_while_rekindle_yaml_cannot_be_used(project):
    gate = project.path.parent / "gate"
    # The next workers begin after the change of the file, because they wait for the check.
    text = WAITING.replace("depends_on: [list]", "depends_on: [list, check]")
    text = text.replace("GATED", GATED).replace("GATE", str(gate))
    run = project.write(text).start()
    project.place.wait_for(lambda: run.has_file("ship-1-check", "began.log"))
    project.place.wait_for(lambda: bool(run.list_events("worker.ended")))
    manifest = project.path / "rekindle.yaml"
    valid = manifest.read_text()
    manifest.write_text(f"{valid}wrong: [")
    gate.touch()
    project.place.wait_for(lambda: "rekindle.yaml" in run.folder.read_notice())
    for _ in range(2):  # the same coordinator, then one that starts with this file
        assert run.state.ended is None
        [pid] = project.list_coordinators()
        run.folder.write_notice("")
        project.place.wait_for(lambda: "rekindle.yaml" in run.folder.read_notice())
        assert [*project.list_coordinators()] == [pid], run.describe()
        project.place.signal(pid, signal.SIGKILL)
        project.place.wait_for(lambda: not project.list_coordinators())
        project.start_coordinator(run.folder)
        project.place.wait_for(lambda: bool(project.list_coordinators()))
    manifest.write_text(f"{valid}notify: [script:///bin/true]\n")
    project.place.wait_for(lambda: "pipeline resume ship 1" in run.folder.read_notice())
    assert "notify" in run.folder.read_notice()
    assert [event for event in run.list_events("worker.ended") if event["outcome"] != "done"] == []
    manifest.write_text(valid)
    run.wait("done")
    assert run.folder.read_notice() == ""
    assert {worker.attempt for worker in run.state.workers.values()} == {1}


CHECKING = """\
  ship:
    steps:
      - id: code
        prompt: "$ echo text > code.txt"
        handover:
          contract: {type: test_suite, command: [sh, -c, "touch artifact.txt; GATED"]}
"""


def test_a_check_is_repeated_if_its_coordinator_is_killed(project):
    gate = project.path.parent / "gate"
    text = CHECKING.replace("GATED", GATED).replace("GATE", str(gate))
    run = project.write(text).start()
    project.place.wait_for(lambda: run.has_file("ship-1-code", "artifact.txt"))
    [pid] = project.list_coordinators()
    project.place.signal(pid, signal.SIGKILL)
    project.place.wait_for(lambda: "artifact.txt" not in str(project.place.processes()), 30)
    gate.touch()
    project.start_coordinator(run.folder)
    run.wait("done")
    assert run.list_files() == {"code.txt": "text\n"}, "the check's files are not the worker's"
    assert len(run.list_events("worker.ended")) == 1
    assert len(run.read_prompts("ship-1-code")) == 1


CAPPED = """\
  ship:
    budget: {tokens: 300}
    steps:
      - id: build
        prompt: |
          $ cat big.txt
          $ echo done >> out.txt
      - {id: check, depends_on: [build], prompt: "$ echo checked > check.txt"}
"""


def test_a_run_that_spends_its_budget_can_be_resumed(project):
    """The worker that spends it has not failed, and continues with a larger budget."""
    run = project.write(CAPPED, {"big.txt": "word " * 2000}).run(outcome="budget")
    assert run.state.workers["build", ""].failures == 0
    run.resume(tokens=1_000_000)
    state = run.wait("done")
    assert state.workers["build", ""].attempt == 2
    assert run.list_files()["check.txt"] == "checked\n"


RUINED = """\
  ship:
    steps:
      - {id: remove, prompt: "$ rm -rf .git", optional: true}
      - id: orphan
        prompt: "$ git checkout -q --orphan new && git commit -qm new"
        optional: true
      - {id: head, prompt: "$ echo nonsense > .git/HEAD", optional: true}
      - id: link
        prompt: "$ mv .git/objects .git/moved && ln -s moved .git/objects"
        optional: true
      - {id: objects, prompt: "$ rm -rf .git/objects && mkdir .git/objects", optional: true}
      - id: output
        prompt: "$ ln -s missing o.txt"
        outputs: {o: o.txt}
        optional: true
      - {id: build, prompt: "$ echo built > built.txt"}
"""


def test_a_worker_that_ruins_its_repository_fails_and_the_run_ends(project):
    run = project.write(RUINED).run()
    state = run.state
    assert "not a git repository any more" in state.workers["remove", ""].why
    assert "its commits do not continue" in state.workers["orphan", ""].why
    for step in ("head", "link", "objects"):
        assert "git does not accept its folder" in state.workers[step, ""].why, step
    assert state.workers["output", ""].why == "its output o.txt is a link; write a file"
    assert run.list_files() == {"built.txt": "built\n"}


ASKING = """\
  ship:
    steps:
      - id: one
        prompt: "$ touch began.log; GATED"
        until: test -e GATE
        cycles: 5
      - id: two
        prompt: "$ touch began.log; GATED"
        until: test -e GATE
        cycles: 5
"""


def test_workers_ask_about_changed_settings_and_continue(project):
    """The operator answers one worker, and resumes the run to accept the change for the other."""
    gate = project.path.parent / "gate"
    text = ASKING.replace("GATED", GATED.replace("GATE", "go.log")).replace("GATE", str(gate))
    run = project.write(text).start()
    agents = ["ship-1-one", "ship-1-two"]
    wait_for = project.place.wait_for
    for agent in agents:
        wait_for(lambda agent=agent: run.has_file(agent, "began.log"))
    manifest = project.path / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace("default: {", "default: {model: other, "))
    for agent in agents:
        (run.find_work(agent) / "go.log").touch()
    for agent in agents:
        wait_for(lambda agent=agent: f"{agent}-1" in project.rekindle("questions"))
    gate.touch()
    command = "rekindle answer ship-1-one-1 accept"
    assert command in project.rekindle("pipeline", "status", "ship")
    project.rekindle(*command.split()[1:])
    project.rekindle("pipeline", "resume", "ship", "--detach")
    run.wait("done")


def test_a_run_is_stopped_while_rekindle_yaml_cannot_be_used(project):
    gate = project.path.parent / "gate"
    run = project.write(ASKING.replace("GATED", GATED).replace("GATE", str(gate))).start()
    for agent in ("ship-1-one", "ship-1-two"):
        project.place.wait_for(lambda agent=agent: run.has_file(agent, "began.log"))
    manifest = project.path / "rekindle.yaml"
    valid = manifest.read_text()
    manifest.write_text(f"{valid}wrong: [")
    out = project.rekindle("pipeline", "stop", "ship")
    assert {"✓ ship-1-one: stopped", "✓ ship-1-two: stopped"} < {*out.splitlines()}
    assert "· ship 1 is stopping: none of its workers is running" in out
    assert "began.log" not in str(project.place.processes())
    manifest.write_text(valid)
    assert not run.wait("stopped").list_running()
