"""`rekindle pipeline run`, `stop` and `resume`, with a coordinator that the test plays."""

import json
import shlex
from datetime import timedelta

import pytest

from rekindle.cli.pipelines import pipeline_start
from rekindle.documents.pipelines.pipeline_events import (
    PipelineEnded,
    PipelineResumed,
    PipelineStopped,
)
from rekindle.errors import AgentError, CalledByAgentError, ManifestError
from rekindle.system import clock
from rekindle.system.processes import process_api
from rekindle.wiring.pipelines import ensure_coordinator as ensuring
from rekindle.wiring.pipelines import start_run


@pytest.fixture
def outcome():
    """How the coordinator ends a run that it starts or resumes; None to leave it open."""
    return ["done"]


@pytest.fixture(autouse=True)
def coordinator(monkeypatch, outcome):
    """Take the commands like a coordinator, and end the run at once."""

    def play(_project, folder):
        ends = outcome[0]
        with folder.hold():
            for command in folder.take_commands():
                folder.append(command)
                ends = "stopped" if isinstance(command, PipelineStopped) else outcome[0]
            if ends:
                now = clock.read_clock()
                folder.append(PipelineEnded(ts=now, outcome=ends, commit="c1", why="because"))

    monkeypatch.setattr(pipeline_start, "ensure_coordinator", play)
    monkeypatch.setattr(start_run, "start_coordinator", lambda *_: None)


def list_kinds(run):
    return [event.kind for event in run.folder.read_events()]


def test_a_run_starts_from_the_last_commit_and_shows_its_end(make_run, rekindle, git):
    run = make_run("ship")  # the next one has number 2
    code, out = rekindle("run", "ship", "Say hello")
    assert code == 0, out
    header, *lines = out.splitlines()[-4:]
    assert header.startswith("ship 2  done  ")
    assert lines == ["  all  stopped", "done: because", "→ rekindle pipeline merge ship 2"]
    folder = run.folder.path.with_name("2")
    assert json.loads((folder / "definition.json").read_bytes())["input"] == "Say hello"
    assert json.loads((folder / "definition.json").read_bytes())["base"] == git("rev-parse", "HEAD")


def test_the_log_of_a_run_contains_no_secret_of_its_input(make_run, rekindle):
    """The workers get it, because the operator typed it for them."""
    secret = f"ghp_{'a1B2c3D4e5' * 4}"[:40]
    run = make_run("ship")
    assert rekindle("run", "ship", f"Use {secret} now.")[0] == 0
    folder = run.folder.path.with_name("2")
    assert "Use " in (folder / "ops.jsonl").read_text()
    assert secret not in (folder / "ops.jsonl").read_text()
    assert secret in (folder / "definition.json").read_text()


def test_files_that_are_not_committed_are_noted(make_run, rekindle, outcome, tmp_path):
    make_run("ship")
    outcome[0] = None
    assert "not committed" not in rekindle("run", "ship", "--detach")[1]
    for number, words in ((1, "1 file is"), (2, "2 files are")):
        (tmp_path / f"new-{number}.txt").touch()
        note = rekindle("run", "ship", "--detach", "--json")[1].splitlines()[-1]
        assert note == (
            f"! {words} not committed, and not part of the run. To include your changes: "
            "`git add -A && git commit`"
        )
    manifest = tmp_path / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace("ship: {", "ship: {base: main, "))
    assert "not committed" not in rekindle("run", "ship", "--detach")[1]


def test_a_run_that_fails_has_an_exit_code(make_run, rekindle, outcome):
    outcome[0] = "failed"
    code, out = rekindle("run", "ship")
    assert code == 9
    assert "Error: ship 1 failed: because\n  → `rekindle pipeline status ship 1` shows why" in out


def test_the_worker_that_failed_the_run_is_named(make_run, rekindle, outcome):
    outcome[0] = "failed"
    run = make_run()
    run.begin("plan")
    run.end("plan", outcome="failed", why="no plan")
    code, out = rekindle("resume", "review")
    assert code == 9
    assert "  plan: no plan\n    → rekindle logs review-1-plan\n" in out
    assert "Error: review 1 failed: because\n  → `rekindle logs review-1-plan` shows why" in out


def test_a_failed_run_names_the_command_that_lists_its_work(make_run, rekindle, outcome, git):
    outcome[0] = "failed"
    run = make_run()
    run.plan()
    git("branch", "rekindle/review-1-plan/work")
    code, out = rekindle("resume", "review")
    assert code == 9
    command = "git branch --list 'rekindle/review-1-*/work'"
    assert f"\n→ {command}\n" in out
    assert f"shows why; `{command}` lists finished work" in out
    assert git(*shlex.split(command)[1:]) == "rekindle/review-1-plan/work"


@pytest.mark.parametrize(
    ("step", "place"),
    [
        ("{id: all, run: [no-such-program]}", "step all: the program of `run:` was not found"),
        (
            "{id: all, prompt: Work., until: [no-such-program]}",
            "step all: the program of `until:` was not found",
        ),
    ],
)
def test_a_missing_program_is_reported_for_its_step(make_run, rekindle, tmp_path, step, place):
    make_run("ship")
    path = tmp_path / "rekindle.yaml"
    text = path.read_text().replace("{id: all, run: just}", step)
    path.write_text(text)
    code, out = rekindle("run", "ship")
    assert code != 0
    line = len(text.splitlines())
    assert f"rekindle.yaml:{line}: pipeline ship, {place}: no-such-program" in out
    assert "ship-0-all" not in out


def test_a_detached_run_names_its_number(make_run, rekindle, outcome):
    outcome[0] = None
    assert rekindle("run", "ship", "--detach") == (
        0,
        "✓ started ship 1\nNext: `rekindle pipeline status ship 1 --watch`.\n",
    )
    assert json.loads(rekindle("run", "ship", "--detach", "--json")[1]) == {
        "v": 1,
        "pipeline": "ship",
        "run": 2,
    }


def test_a_run_prints_its_events_as_json(make_run, rekindle):
    code, out = rekindle("run", "ship", "--json")
    assert code == 0
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["kind"], line["run"], line["step"]) for line in lines] == [
        ("pipeline.started", 1, None),
        ("pipeline.ended", 1, None),
    ]


def test_ctrl_c_leaves_the_run_running(make_run, rekindle, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline_start, "watch_run", interrupt)
    code, out = rekindle("run", "ship")
    assert code == 130
    assert "ship 1 continues without this command.\n" in out
    assert "`rekindle pipeline stop ship 1` stops it" in out


def test_an_unknown_pipeline_is_refused(make_run, rekindle):
    code, out = rekindle("run", "shp")
    assert code == 7
    assert "use one of: review, ship" in out


def test_the_newest_open_run_is_stopped_and_resumed(make_run, rekindle):
    first, second = make_run(), make_run()
    second.append(PipelineEnded, outcome="failed")
    assert rekindle("stop", "review") == (
        0,
        "✓ review 1: stopped\nNext: `rekindle pipeline resume review 1`.\n",
    )
    assert list_kinds(first)[1:] == ["pipeline.stopped", "pipeline.ended"]
    assert rekindle("stop", "review", "1")[1] == "· review 1 is not running: it is stopped\n"
    assert "has no run to stop" in rekindle("stop", "review")[1]
    code, out = rekindle("resume", "review")
    assert code == 0, out
    assert list_kinds(first)[3:] == ["pipeline.resumed", "pipeline.ended"]


@pytest.mark.parametrize("is_missing", [True, False])
def test_a_run_is_stopped_without_a_valid_manifest(make_run, rekindle, monkeypatch, is_missing):
    first, second = make_run(), make_run()
    second.append(PipelineEnded, outcome="failed")
    first.begin("plan")
    manifest = first.path / "rekindle.yaml"
    manifest.unlink() if is_missing else manifest.write_text("wrong: [")
    (first.path / "src").mkdir()
    monkeypatch.chdir(first.path / "src")
    code, out = rekindle("stop", "review")
    assert code == 0, out
    assert "· review 1 is stopping: none of its workers is running" in out
    assert "Note: " in out
    assert first.folder.read_state().is_stopped
    for words in (("review", "2"), ("review", "3"), ("ship",)):
        assert rekindle("stop", *words)[0] == ManifestError.exit_code


def test_an_agent_does_not_stop_a_run_without_a_manifest(make_run, rekindle, monkeypatch):
    run = make_run()
    (run.path / "rekindle.yaml").write_text("wrong: [")
    folder = run.path / ".rekindle/agents/trades"
    folder.mkdir(parents=True)
    environment = {"REKINDLE_LAUNCH": "trades-1", "REKINDLE_FOLDER": str(folder)}
    monkeypatch.setattr(process_api.here, "environment", lambda _: environment)
    assert rekindle("stop", "review")[0] == CalledByAgentError.exit_code
    assert not run.folder.read_state().is_stopped


def test_a_stop_and_a_resume_count_although_the_clock_was_set_back(make_run, rekindle, outcome):
    run = make_run()
    run.append(PipelineResumed)
    later = clock.read_clock() + timedelta(days=1)
    run.folder.append(PipelineResumed(ts=later))
    assert rekindle("stop", "review")[1].startswith("✓ review 1: stopped\n")
    assert run.folder.read_state().is_stopped
    outcome[0] = None
    assert rekindle("resume", "review", "--detach")[0] == 0
    assert not run.folder.read_state().is_stopped


def test_a_run_whose_coordinator_was_killed_is_resumed_without_a_command(make_run, rekindle):
    run = make_run()
    assert rekindle("resume", "review", "--detach") == (0, "✓ review 1 continues\n")
    assert PipelineResumed.__struct_config__.tag not in list_kinds(run)
    assert run.folder.settings.exists()


def test_a_larger_budget_continues_a_run(make_run, rekindle):
    run = make_run()
    run.append(PipelineEnded, outcome="budget", why="its budget of $30 is spent")
    code, out = rekindle("resume", "review")
    assert code == 2
    assert "review 1 has reached its budget: its budget of $30 is spent" in out
    assert "`rekindle pipeline resume review 1 --budget usd=60`" in out
    assert rekindle("resume", "review", "--budget", "usd=60")[0] == 0
    [resumed] = [event for event in run.folder.read_events() if event.kind == "pipeline.resumed"]
    assert resumed.budget == {"usd": 60}


@pytest.mark.parametrize(
    ("cap", "message"),
    [
        ("60", "'60' is not a budget"),
        ("usd=-1", "'usd=-1' is not a budget"),
        ("usd=nan", "'usd=nan' is not a budget"),
        ("eur=60", "'eur=60' is not a budget"),
        ("usd=30", "the limit usd=30 is not larger than the current one, 30"),
        ("hours=3", "review 1 has no limit in hours"),
    ],
)
def test_a_budget_that_cannot_be_raised_is_refused(make_run, rekindle, cap, message):
    make_run()
    code, out = rekindle("resume", "review", "--budget", cap)
    assert code == 2
    assert message in out


def test_a_run_that_is_done_or_failed_cannot_be_resumed(make_run, rekindle):
    make_run().append(PipelineEnded, outcome="failed")
    code, out = rekindle("resume", "review", "1")
    assert code == 2
    assert "review 1 is failed, so it cannot be resumed" in out
    assert "has no run to resume" in rekindle("resume", "review")[1]


def test_a_coordinator_that_does_not_start_is_reported_with_its_output(make_run, monkeypatch):
    run = make_run()
    starts = []

    def fail(_project, folder):
        starts.append(folder)
        folder.output_log.write_text("Error: no disk\n")

    monkeypatch.setattr(ensuring, "start_coordinator", fail)
    monkeypatch.setattr(ensuring, "UP_SECONDS", 0.2)
    with pytest.raises(AgentError, match="coordinator of review 1 failed to start: Error: no disk"):
        ensuring.ensure_coordinator(None, run.folder)
    assert starts


def test_a_coordinator_is_started_until_one_has_taken_the_command(make_run, monkeypatch):
    """A coordinator that is exiting does not see the command, and a new one exits meanwhile."""
    run = make_run()
    run.folder.submit(PipelineStopped(ts=run.now))
    starts = []

    def start(_project, folder):
        starts.append(folder)
        if len(starts) > 1:
            list(folder.take_commands())
            run.append(PipelineEnded, outcome="stopped")

    monkeypatch.setattr(ensuring, "start_coordinator", start)
    monkeypatch.setattr(ensuring, "PIPELINE_START_SECONDS", 0.0)
    ensuring.ensure_coordinator(None, run.folder)
    assert len(starts) == 2


def test_a_command_that_shows_a_run_starts_its_killed_coordinator_again(make_run, monkeypatch):
    run = make_run()
    starts = []
    monkeypatch.setattr(ensuring, "start_coordinator", lambda _, folder: starts.append(folder))
    keeper = ensuring.CoordinatorKeeper(None, run.folder)
    with run.folder.hold():
        keeper.check()
    assert starts == []
    keeper.check()
    keeper.check()
    assert starts == [run.folder], "the new coordinator gets time to start"
    run.append(PipelineEnded, outcome="done")
    ensuring.CoordinatorKeeper(None, run.folder).check()
    assert starts == [run.folder]


def test_a_run_whose_coordinator_is_killed_at_once_still_ends(
    make_run, rekindle, outcome, monkeypatch
):
    run = make_run("ship")
    outcome[0] = None

    def end(_project, folder):
        run.folder = folder
        run.append(PipelineEnded, outcome="done", commit="c1")

    monkeypatch.setattr(ensuring, "start_coordinator", end)
    assert rekindle("run", "ship")[0] == 0


def test_a_moved_project_does_not_use_a_number_of_an_earlier_run_again(
    make_run, rekindle, git, tmp_path
):
    make_run("ship")
    git("update-ref", "refs/heads/rekindle/ship/4", "HEAD")
    assert rekindle("run", "ship", "--detach")[1].startswith("✓ started ship 5\n")
    (tmp_path / ".rekindle/agents/ship-7-all").mkdir(parents=True)
    assert rekindle("run", "ship", "--detach")[1].startswith("✓ started ship 8\n")
