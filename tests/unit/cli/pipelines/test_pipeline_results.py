"""`rekindle pipeline diff`, `merge` and `clean`: the result of a run reaches the user's branch."""

import json
import os

import pytest

import worktrees
from rekindle.documents.pipelines.pipeline_events import PipelineEnded, StepMerged
from rekindle.stores.folders.private_files import find_private_project
from rekindle.stores.pipelines.run_folder import list_runs
from rekindle.system.processes import program_search


def test_the_changes_of_a_run_a_step_and_a_worker_are_shown(make_run, rekindle):
    run = make_run()
    run.finish()
    code, out = rekindle("diff", "review")
    assert code == 0
    assert "+a\n" in out
    assert "+b\n" in out
    assert "2 files changed" in rekindle("diff", "review", "--stat")[1]
    assert rekindle("diff", "review", "--step", "plan") == (0, "No file differs.\n")
    assert "+b\n" in rekindle("diff", "review", "--step", "build")[1]
    assert "+b\n" not in rekindle("diff", "review", "--step", "build", "--worker", "a")[1]


def test_the_changes_of_a_step_do_not_include_those_that_an_agent_merged_for_it(make_run, rekindle):
    run = make_run()
    run.plan()
    merged = run.commit("merged.txt", "merged\n")
    run.begin("build", "_inputs")
    run.end("build", "_inputs", merged)
    first = run.commit("a.txt", "a\n", merged)
    for key in ("a", "b"):
        run.begin("build", key, merged)
        run.end("build", key, first)
    run.append(StepMerged, step="build", commit=first, merged=("a", "b"))
    _, out = rekindle("diff", "review", "--step", "build", "--stat")
    assert "a.txt" in out
    assert "merged.txt" not in out


def test_only_what_is_done_has_a_difference(make_run, rekindle):
    run = make_run()
    run.plan()
    run.begin("build", "a")
    run.end("build", "a", run.commit("a.txt", "a\n"))
    assert "has no run that is done" in rekindle("diff", "review")[1]
    code, out = rekindle("diff", "review", "1")
    assert code == 8
    assert "run 1 of review has no result: it is running" in out
    code, out = rekindle("diff", "review", "--step", "build")
    assert code == 7
    assert "--worker shows the changes of one worker: a" in out
    assert rekindle("diff", "review", "--worker", "a")[0] == 2


def test_a_result_is_merged_and_your_changes_stay(make_run, rekindle, git, tmp_path):
    result = make_run().finish()
    (tmp_path / "mine.txt").write_text("mine\n")
    code, out = rekindle("merge", "review", "--check")
    assert code == 0
    assert "· 2 commits of rekindle/review/1 can be merged into main" in out
    assert not (tmp_path / "a.txt").exists()
    document = json.loads(rekindle("merge", "review", "1", "--json")[1])
    assert (document["is_merged"], document["commit"]) == (True, result)
    assert git("rev-parse", "main") == result
    assert (tmp_path / "mine.txt").read_text() == "mine\n"
    assert rekindle("merge", "review") == (
        0,
        "Nothing to merge: main has the result of review 1.\n",
    )


def test_a_merge_that_would_overwrite_a_file_changes_nothing(make_run, rekindle, git, tmp_path):
    run = make_run()
    run.finish()
    (tmp_path / "a.txt").write_text("mine\n")
    code, out = rekindle("merge", "review")
    assert code == 5
    assert "the merge would overwrite your changes to a.txt" in out
    assert (git("rev-parse", "main"), (tmp_path / "a.txt").read_text()) == (run.base, "mine\n")


def test_a_conflict_changes_nothing(make_run, rekindle, git, tmp_path):
    make_run().finish()
    (tmp_path / "a.txt").write_text("mine\n")
    git("add", "-A")
    git("commit", "-qm", "mine")
    before = git("rev-parse", "main")
    code, out = rekindle("merge", "review")
    assert code == 8
    assert "rekindle/review/1 cannot be merged into main: conflicts in a.txt" in out
    assert "resolve them with `git merge rekindle/review/1`" in out
    assert git("rev-parse", "main") == before


def test_a_run_without_a_result_cannot_be_merged(make_run, rekindle):
    run = make_run()
    run.append(PipelineEnded, outcome="failed", why="failed: plan")
    assert "the pipeline review has no run that is done" in rekindle("merge", "review")[1]
    code, out = rekindle("merge", "review", "1")
    assert code == 8
    assert "run 1 of review has no result: it is failed" in out


@pytest.fixture
def remote(tmp_path_factory, git):
    """A remote of the project, without any branch."""
    folder = tmp_path_factory.mktemp("remote")
    worktrees.git(folder, "init", "-q", "--bare")
    git("remote", "add", "origin", str(folder))
    return lambda *words: worktrees.git(folder, *words).decode().strip()


@pytest.fixture
def gh(tmp_path_factory, monkeypatch):
    """Put a program on the PATH that records how `gh` was called."""
    folder = tmp_path_factory.mktemp("bin")
    record = folder / "record"
    (folder / "gh").write_text(
        f'#!/bin/sh\nfor word; do echo "$word"; done > {record}\n'
        f'while [ $# -gt 1 ]; do shift; done; cat "$1" >> {record}\n'
        'echo "https://localhost/pull/1"\n'
    )
    (folder / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return record


def test_a_pull_request_is_created_for_a_pushed_branch(make_run, rekindle, git, remote, gh):
    run = make_run(text="Migrate the modules; `rm -rf`\nCarefully.")
    git("remote", "get-url", "origin")
    result = run.finish()
    code, out = rekindle("merge", "review", "--pr")
    assert code == 0, out
    assert out == ("✓ pushed rekindle/review/1 to origin\n✓ created https://localhost/pull/1\n")
    assert remote("rev-parse", "refs/heads/rekindle/review/1") == result
    assert git("rev-parse", "main") == run.base
    words = gh.read_text().splitlines()
    assert words[:8] == [
        *("pr", "create", "--head", "rekindle/review/1", "--base", "main"),
        *("--title", "Migrate the modules; `rm -rf`"),
    ]
    assert "Result of run 1 of the pipeline `review`." in words
    assert "> Carefully." in words
    assert "| build | done | 2 of 2 done |" in words
    assert json.loads(rekindle("merge", "review", "--pr", "--json")[1])["url"].endswith("/1")


def test_a_pull_request_contains_no_secret(make_run, rekindle, remote, gh):
    secret = f"ghp_{'a1B2c3D4e5' * 4}"[:40]
    make_run(text=f"Use {secret} now.\nAnd {secret} later.").finish()
    assert rekindle("merge", "review", "--pr")[0] == 0
    assert "later." in gh.read_text()
    assert secret not in gh.read_text()


def test_without_gh_nothing_is_pushed(make_run, rekindle, git, remote, monkeypatch):
    make_run().finish()
    find = program_search.find_executable
    monkeypatch.setattr(
        program_search,
        "find_executable",
        lambda name, *more: None if name == "gh" else find(name, *more),
    )
    code, out = rekindle("merge", "review", "--pr")
    assert code == 9
    assert "gh could not be started: it is not installed" in out
    assert "git push origin rekindle/review/1" in out
    assert remote("for-each-ref") == ""


def test_a_failure_of_gh_is_reported_with_the_command(make_run, rekindle, remote, gh):
    make_run().finish()
    program = gh.with_name("gh")
    program.write_text("#!/bin/sh\necho 'not logged in' >&2\nexit 4\n")
    code, out = rekindle("merge", "review", "--pr")
    assert code == 5
    assert "`gh pr create` failed: not logged in" in out
    assert "`gh pr create --head rekindle/review/1 --base main`" in out


def test_a_branch_that_has_changed_on_the_remote_is_not_overwritten(
    make_run, rekindle, git, remote, gh
):
    run = make_run()
    run.finish()
    other = run.commit("other.txt", "other\n")
    git("push", "-q", "origin", f"{other}:refs/heads/rekindle/review/1")
    code, out = rekindle("merge", "review", "--pr")
    assert code == 5
    assert "the branch rekindle/review/1 on origin has commits" in out
    assert remote("rev-parse", "refs/heads/rekindle/review/1") == other


def test_a_pull_request_needs_a_remote(make_run, rekindle):
    make_run().finish()
    code, out = rekindle("merge", "review", "--pr")
    assert code == 5
    assert "the repository has no remote to push to" in out


@pytest.mark.parametrize("number", [["1"], []])
def test_a_run_that_is_not_over_is_not_cleaned(make_run, rekindle, number):
    make_run().plan()
    code, out = rekindle("clean", "review", *number)
    assert code == 6
    assert "run 1 of review is not over\n  → stop it: `rekindle pipeline stop review 1`" in out


def test_cleaning_keeps_the_branches(make_run, rekindle, git):
    run = make_run()
    run.finish()
    code, out = rekindle("clean", "review")
    assert code == 0
    assert out.splitlines() == [
        "✓ removed 0 folders of workers",
        "· kept the result on rekindle/review/1",
        "· kept rekindle/review-1-build-a/work",
        "· kept rekindle/review-1-build-b/work",
    ]
    assert run.folder.path.is_dir()


def test_cleaning_without_a_number_cleans_all_finished_runs(make_run, rekindle, git, tmp_path):
    for _ in range(3):
        make_run().finish()
    make_run().plan()
    make_run().append(PipelineEnded, outcome="stopped")
    for _ in range(2):
        make_run().append(PipelineEnded, outcome="failed", why="failed: plan")
    damaged = make_run().folder
    make_run().append(PipelineEnded, outcome="done")
    (damaged.path / "definition.json").write_text("{")
    document = json.loads(rekindle("clean", "review", "2", "--all", "--json")[1])
    assert (document["runs"], document["is_forgotten"]) == ([2], True)
    code, out = rekindle("clean", "review")
    assert code == 0
    first, *others = out.splitlines()
    assert first == "✓ removed 0 folders of workers in 5 runs"
    assert [line.partition(" it is ")[0] for line in others[:2]] == [
        "· kept run 4:",
        "· kept run 5:",
    ]
    assert others[1].endswith("it is stopped")
    assert others[2].startswith("· kept run 8: ")
    document = json.loads(rekindle("clean", "review", "--all", "--json")[1])
    assert document["runs"] == [1, 3, 6, 7, 9]
    assert [*document["kept_runs"]] == ["4", "5", "8"]
    assert len(document["branches"]) == 4
    assert [folder.run for folder in list_runs(find_private_project(tmp_path))] == [4, 5, 8]


def test_a_pipeline_without_a_finished_run_is_not_cleaned(make_run, rekindle):
    make_run().append(PipelineEnded, outcome="stopped")
    code, out = rekindle("clean", "review")
    assert code != 0
    assert "the pipeline review has no run that is finished" in out
    assert "removed 0 folders" in rekindle("clean", "review", "1")[1]


def test_cleaning_everything_keeps_the_result_and_what_it_does_not_contain(
    make_run, rekindle, git, tmp_path
):
    run = make_run()
    run.finish()
    other = run.commit("c.txt", "c\n")
    git("update-ref", "refs/heads/rekindle/review-1-build-a/work", other)
    # The output of the plan is on its branch, but not in the result.
    plan = run.commit("items.json", "[]\n")
    git("update-ref", "refs/heads/rekindle/review-1-plan/work", plan)
    for ref in ("heads/rekindle/review-1-plan/relay", "rekindle/review-1-plan/1"):
        git("update-ref", f"refs/{ref}", plan)
    git("update-ref", "refs/heads/rekindle/review/1-build", run.base)
    git("update-ref", "refs/heads/rekindle/review/1-result", other)
    for name, commit in (("build/a", other), ("plan", plan)):
        git("update-ref", f"refs/rekindle/pipelines/review/1/{name}", commit)
    document = json.loads(rekindle("clean", "review", "--all", "--json")[1])
    assert document["branches"] == [
        "rekindle/review-1-plan/work",
        "rekindle/review-1-build-b/work",
        "rekindle/review/1-build",
    ]
    assert document["kept_branches"] == ["rekindle/review-1-build-a/work"]
    assert document["is_forgotten"]
    assert not run.folder.path.exists()
    refs = git("for-each-ref", "--format=%(refname)", "refs/heads/rekindle/", "refs/rekindle/")
    assert refs.splitlines() == [
        "refs/heads/rekindle/review-1-build-a/work",
        "refs/heads/rekindle/review/1",
        "refs/heads/rekindle/review/1-result",
        "refs/rekindle/pipelines/review/1/plan",
    ]
    assert make_run().folder.run == 2
