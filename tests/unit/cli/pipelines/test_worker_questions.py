"""Questions of a run's workers are listed and answered like those of other agents."""

import pytest

from rekindle import config
from rekindle.cli import main
from rekindle.cli.pipelines import pipeline_start
from rekindle.documents import events
from rekindle.documents.pipelines.pipeline_events import PipelineEnded
from rekindle.policy.operator import questions
from rekindle.system import clock
from rekindle.wiring.access import trust_checks
from rekindle.wiring.open_store import open_store


@pytest.fixture
def asking(make_run):
    """Return a run whose worker `review-1-plan` asks about changed settings."""
    run = make_run()
    agent = run.begin("plan")
    ask(run.path, agent)
    return run


def ask(path, agent, why="settings"):
    project = config.load_project(path)
    trust_checks.accept_project(project)
    trust_checks.accept_settings(project, agent)
    store, now = open_store(project), clock.read_clock()
    store.create(agent)
    with store.writer(agent) as writer:
        writer.append(events.DesiredSet(ts=now, desired="running"), events.RunStarted(ts=now))
        entered = events.SafeModeEntered(ts=now, why=why, words="rekindle.yaml changed")
        terms = questions.QuestionTerms(now, 3600.0)
        writer.append(*questions.add_questions(writer.projection, [entered], terms))


@pytest.fixture
def call(capfd):
    """Run a command that must succeed; return its output."""

    def run(*words):
        code = main.run([*words])
        out, err = capfd.readouterr()
        assert code == 0, err
        return out

    return run


def explain_unaccepted(path, agent="review-1-plan"):
    return trust_checks.explain_unaccepted(config.load_project(path), agent)


def read_answers(path, agent="review-1-plan"):
    projection = open_store(config.load_project(path)).read(agent).projection
    return {question: answer.choice for question, answer in projection.answers.items()}


def test_the_command_in_status_answers_the_question(asking, call):
    command = "rekindle answer review-1-plan-1 accept"
    assert command in call("pipeline", "status", "review")
    assert "✓ review-1-plan: will be started again" in call(*command.split()[1:])
    assert read_answers(asking.path) == {"review-1-plan-1": "accept"}


def test_resume_accepts_the_settings_of_running_workers(asking, call, monkeypatch):
    monkeypatch.setattr(pipeline_start, "ensure_coordinator", lambda *_: None)
    manifest = asking.path / "rekindle.yaml"
    manifest.write_text(f"{manifest.read_text()}personas: {{default: {{sandbox: off}}}}\n")
    assert "personas.default: added" in explain_unaccepted(asking.path)
    call("pipeline", "resume", "review", "--detach")
    assert explain_unaccepted(asking.path) == ""
    assert call("questions") == "No open questions.\n"
    assert "needs you" not in call("pipeline", "status", "review")


def test_resume_does_not_restart_a_worker_that_waits_for_another_reason(
    make_run, call, monkeypatch
):
    monkeypatch.setattr(pipeline_start, "ensure_coordinator", lambda *_: None)
    run = make_run()
    ask(run.path, run.begin("plan"), why="crash")
    call("pipeline", "resume", "review", "--detach")
    assert "review-1-plan-1" in call("questions")


def test_questions_of_an_open_run_are_listed(asking, call):
    assert "review-1-plan-1" in call("questions")
    asking.append(PipelineEnded, outcome="failed")
    assert call("questions") == "No open questions.\n"
    assert "review-1-plan-1" in call("questions", "review-1-plan")


def test_the_only_open_question_is_answered_without_its_id(asking, call):
    call("approve")
    assert read_answers(asking.path) == {"review-1-plan-1": "accept"}


def test_a_worker_with_the_name_of_an_open_question_does_not_hide_the_question(asking, call):
    asking.begin("plan", "1")
    call("answer", "review-1-plan-1", "accept")
    assert read_answers(asking.path) == {"review-1-plan-1": "accept"}
