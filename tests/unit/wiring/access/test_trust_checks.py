"""What is recorded when the user accepts a folder, and in which order."""

import pytest

from rekindle import config
from rekindle.cli import trust_prompt
from rekindle.stores.folders import private_files
from rekindle.wiring.access import trust_checks

MANIFEST = """version: 1
fleet: {address: "127.0.0.1:7233"}
agents: {trades: {harness: command, command: [worker]}}
"""


def test_a_command_that_starts_meanwhile_finds_trust_and_settings(tmp_path, monkeypatch):
    """Three workers of a fleet start at once: none finds a trusted folder without its settings."""
    (tmp_path / "rekindle.yaml").write_text(MANIFEST)
    project = config.load_project(tmp_path)
    record_trust = trust_checks.trust_records.record_trust
    seen = []

    def see_what_is_accepted(*arguments) -> None:
        """Look as another command does, right after the trust is recorded."""
        record_trust(*arguments)
        trust_checks.require_fleet(project)
        trust_checks.require_accepted(project, "trades")
        seen.append(arguments)

    monkeypatch.setattr(trust_checks.trust_records, "record_trust", see_what_is_accepted)
    trust_checks.accept_project(project)
    assert seen


def test_settings_of_another_folder_at_the_same_path_are_removed(tmp_path):
    folder = tmp_path / "project"
    for agent in ("earlier", "trades"):
        folder.mkdir()
        (folder / "rekindle.yaml").write_text(MANIFEST.replace("trades", agent))
        trust_checks.accept_folder(folder)
        folder.rename(tmp_path / f"moved-{agent}")
    (tmp_path / "moved-trades").rename(folder)
    assert private_files.find_private_project(folder).agents() == ["trades"]


PIPELINES = """version: 1
personas: {planner: {adapter: command}}
pipelines:
  review:
    copy: [.env]
    prepare: [npm, ci]
    steps:
      - {id: plan, persona: planner, prompt: {file: plan.md}, until: [just, plan]}
      - id: lint
        run: [just, lint]
        handover: {contract: {type: test_suite, command: [just, test]}}
"""


@pytest.fixture
def load(tmp_path):
    """Return a function that writes the manifest of a project and loads it."""
    folder = tmp_path / "project"
    folder.mkdir()

    def load_manifest(text=PIPELINES):
        (folder / "rekindle.yaml").write_text(text)
        return config.load_project(folder)

    return load_manifest


def test_a_pipeline_that_was_never_accepted_is_not_started(load):
    project = load()
    assert trust_checks.explain_unaccepted_pipeline(project, "review") == (
        trust_checks.NEVER_ACCEPTED
    )
    trust_checks.accept_project(project)
    assert trust_checks.explain_unaccepted_pipeline(project, "review") == ""
    assert trust_checks.accept_pipeline(project, "review") == []


def test_a_changed_pipeline_is_not_started_until_it_is_accepted(load):
    trust_checks.accept_project(load())
    project = load(PIPELINES.replace("[just, lint]", "[sh, -c, evil]"))
    reason = trust_checks.explain_unaccepted_pipeline(project, "review")
    assert reason.startswith("rekindle.yaml changed without a command from you: ")
    assert "pipelines.review.steps.lint.run" in reason
    assert trust_checks.accept_pipeline(project, "review") == [
        'pipelines.review.steps.lint.run: ["just", "lint"] → ["sh", "-c", "evil"]'
    ]
    assert trust_checks.explain_unaccepted_pipeline(project, "review") == ""


def test_a_new_pipeline_is_not_accepted_with_another(load):
    trust_checks.accept_project(load())
    project = load(f"{PIPELINES}  other: {{steps: [{{id: lint, run: [evil]}}]}}\n")
    assert trust_checks.explain_unaccepted_pipeline(project, "review") == ""
    assert trust_checks.explain_unaccepted_pipeline(project, "other")


@pytest.mark.parametrize("name", [".env", "plan.md"])
def test_a_link_out_of_the_project_needs_consent(load, tmp_path, name):
    """An agent could replace a file by a link to another one that is copied or read."""
    project = load()
    trust_checks.accept_project(project)
    (tmp_path / "secret").write_text("x")
    (project.path / name).symlink_to(tmp_path / "secret")
    assert str(tmp_path / "secret") in trust_checks.explain_unaccepted_pipeline(project, "review")


def test_another_folder_at_the_same_path_has_no_accepted_pipeline(load, tmp_path):
    project = load()
    trust_checks.accept_project(project)
    project.path.rename(tmp_path / "earlier")
    project.path.mkdir()
    trust_checks.accept_folder(project.path)
    assert trust_checks.explain_unaccepted_pipeline(project, "review") == (
        trust_checks.NEVER_ACCEPTED
    )


def test_the_question_shows_the_commands_of_pipelines(load, capsys):
    trust_prompt._show_project(load())
    shown = capsys.readouterr().err
    for line in (
        'pipelines.review.prepare: ["npm", "ci"]',
        'pipelines.review.steps.plan.until: ["just", "plan"]',
        'pipelines.review.steps.lint.run: ["just", "lint"]',
        '"command": ["just", "test"]',
    ):
        assert line in shown
