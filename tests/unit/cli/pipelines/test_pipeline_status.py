"""`rekindle pipeline status`: all runs on a line each, or one run with its steps."""

import json

import pytest

from rekindle.cli import main
from rekindle.cli.pipelines import pipeline_status
from rekindle.cli.reports.schedule_lines import ACCEPT_HINT, NOT_ACCEPTED
from rekindle.documents.pipelines.pipeline_events import PipelineEnded, PipelineStopped, StepMerged


def test_without_a_run_the_next_command_is_named(make_run, rekindle):
    assert rekindle("status") == (
        0,
        "No pipeline has run yet. Next: `rekindle pipeline run NAME`.\n",
    )


def test_each_run_has_a_line_and_the_newest_is_first(make_run, rekindle):
    make_run().finish()
    running = make_run()
    running.plan()
    running.begin("build", "a")
    other = make_run("ship")
    other.folder.path.joinpath("definition.json").write_text("{")
    code, out = rekindle("status")
    assert code == 0
    broken, *lines = out.splitlines()
    assert broken.startswith("ship 1  broken: definition.json: cannot be read (")
    assert lines == [
        "review 1  done  plan ✓  build 2/2 ✓   $3.00 of $30",
        "review 2  plan ✓  build 0/2 (1 running)   $0.50 of $30",
    ]
    entries = json.loads(rekindle("status", "--json")[1])["runs"]
    assert next((entry["pipeline"], entry["run"]) for entry in entries) == ("ship", 1)
    assert "error" in entries[0]


def test_the_last_run_of_a_pipeline_is_shown_with_its_steps(make_run, rekindle):
    make_run()
    run = make_run()
    run.plan()
    run.begin("build", "a")
    run.end("build", "a", outcome="failed", why="no tests were found")
    code, out = rekindle("status", "review")
    assert code == 0
    header, *lines = out.splitlines()
    assert header.startswith("review 2  running  for ")
    assert header.endswith("$0.50 of $30")
    assert lines == [
        "  plan   ✓ done                                                            $0.50",
        "  build  running    [x░]  0/2, 1 failed",
        "! its coordinator is not running; this starts it:",
        "    rekindle pipeline resume review 2",
        "failed:",
        "  build a: no tests were found",
        "    → rekindle logs review-2-build-a",
    ]
    [entry] = json.loads(rekindle("status", "review", "2", "--json")[1])["runs"]
    assert entry["steps"][1] == {
        "step": "build",
        "state": "running",
        "is_matrix": True,
        "workers": 2,
        "done": 0,
        "running": 0,
        "retrying": 0,
        "failed": 1,
        "usd": 0.0,
        "is_estimated": False,
        "tokens": 0,
        "pending": 1,
    }


def test_a_conflict_is_shown_with_the_commands_that_resolve_it(make_run, rekindle, git):
    run = make_run()
    run.plan()
    commits = {key: run.commit("same.txt", f"{key}\n") for key in "ab"}
    for key, commit in commits.items():
        run.begin("build", key)
        run.end("build", key, commit)
    run.append(StepMerged, step="build", commit=commits["a"], merged=("a",), conflicts=("b",))
    _, out = rekindle("status", "review")
    assert "waits for you:\n  build: git cannot merge the changes of b." in out
    commands = [line.strip() for line in out.splitlines() if line.strip().startswith("git ")]
    assert commands[:2] == [
        "git switch rekindle/review/1-build",
        f"git merge {commits['b'][:10]}",
    ]


def test_a_command_that_is_not_in_the_log_yet_counts(make_run, rekindle):
    run = make_run()
    run.folder.submit(PipelineStopped(ts=run.now))
    assert rekindle("status")[1].startswith("review 1  stopping  plan running")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("reviw",), "no pipeline named 'reviw' in rekindle.yaml\n  → use one of: review, ship"),
        (
            ("ship",),
            "the pipeline ship has no run yet\n  → start one: `rekindle pipeline run ship`",
        ),
        (("review", "9"), "there is no run 9 of the pipeline review\n  → its last run is 1"),
    ],
)
def test_a_run_that_does_not_exist_is_refused(make_run, rekindle, words, message):
    make_run()
    code, out = rekindle("status", *words)
    assert code == 7
    assert message in out


@pytest.mark.parametrize("words", [("--watch",), ("review", "--watch", "--json")])
def test_watch_shows_one_run_to_a_person(make_run, rekindle, words):
    make_run()
    assert rekindle("status", *words)[0] == 2


def test_watch_ends_with_the_run(make_run, rekindle):
    run = make_run()
    run.append(PipelineEnded, outcome="stopped", why="by the operator")
    code, out = rekindle("status", "review", "--watch")
    assert code == 0
    assert "stopped: by the operator\n→ rekindle pipeline resume review 1\n" in out


def test_without_a_terminal_the_tasks_of_a_person_are_printed_once(make_run, rekindle, monkeypatch):
    run = make_run()
    run.folder.write_notice("rekindle.yaml was changed")
    reads = []

    def sleep(_seconds):
        reads.append(1)
        if len(reads) == 3:
            run.append(PipelineEnded, outcome="stopped")

    monkeypatch.setattr(pipeline_status.time, "sleep", sleep)
    code, out = rekindle("status", "review", "--watch")
    assert code == 0
    lines = "waits for you:\n  rekindle.yaml was changed\n    rekindle pipeline resume review 1\n"
    assert out.count(lines) == 1


def test_names_of_pipelines_and_steps_are_completed(make_run, monkeypatch, capfd):
    for words, expected in (
        ("rekindle pipeline status re", "plain,review"),
        ("rekindle pipeline diff review --step b", "plain,build"),
    ):
        monkeypatch.setenv("_REKINDLE_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        assert main.run([]) == 0
        assert capfd.readouterr().out.splitlines() == [expected]


def test_status_shows_the_schedules_of_pipelines(make_run, tmp_path, capfd):
    make_run()
    manifest = tmp_path / "rekindle.yaml"
    manifest.write_text(manifest.read_text().replace("ship: {", "ship: {every: 1h, "))
    assert main.run(["status"]) == 0
    assert capfd.readouterr().out.splitlines()[-2:] == [
        "ship  every 1h; not in effect",
        f"  ! {NOT_ACCEPTED}; {ACCEPT_HINT}",
    ]
    assert main.run(["schedules", "--accept", "--trust"]) == 0
    capfd.readouterr()
    assert main.run(["status"]) == 0
    assert capfd.readouterr().out.splitlines()[-2].startswith("ship  every 1h; next run ")


def test_status_shows_each_open_run_below_the_agents(make_run, capfd):
    make_run().finish()
    run = make_run()
    run.plan()
    make_run("ship").folder.path.joinpath("definition.json").write_text("{")
    assert main.run(["status"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("trades  (command)")
    assert lines[-1] == "review 2  plan ✓  build 0/2   $0.50 of $30"
    assert not any(line.startswith(("review 1", "ship")) for line in lines)
    assert main.run(["status", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert [(entry["pipeline"], entry["run"]) for entry in document["runs"]] == [("review", 2)]
    assert main.run(["status", "trades"]) == 0
    assert "review" not in capfd.readouterr().out
