"""What the checks of a step look up: personas, CLIs, names and paths."""

import pytest

from rekindle.documents import manifest
from rekindle.documents.manifest import Persona
from rekindle.policy.pipelines.step_context import StepContext, explain_path, suggest_name

TEXT = """\
version: 1
agents: {trades: {harness: gemini}, docs: {harness: gemini}}
personas: {builder: {adapter: codex}, planner: {}}
pipelines:
  ship:
    steps:
      - {id: plan}
      - {id: build}
"""


def make_context(text=TEXT):
    return StepContext(*manifest.read_manifest(text), "ship", 1)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("a.json", ""),
        ("out/a.json", ""),
        ("./out/a.json", ""),
        ("..a/b..", ""),
        (".github/a", ""),
        ("a/.git/b", ""),
        ("", "is not a file"),
        (" ", "is not a file"),
        (".", "is not a file"),
        ("./", "is not a file"),
        ("a\0b", "is not a file"),
        ("/etc/a", "is outside the folder"),
        ("~/a", "is outside the folder"),
        ("\\\\host\\a", "is outside the folder"),
        ("C:/a", "is outside the folder"),
        ("..", "leaves the folder"),
        ("a/../b", "leaves the folder"),
        ("a\\..\\b", "leaves the folder"),
        (".git/config", "is in .git, which is not for steps"),
        ("./.rekindle/a", "is in .rekindle, which is not for steps"),
    ],
)
def test_a_path_must_name_a_file_in_its_folder(path, reason):
    assert explain_path(path) == reason


def test_the_nearest_name_is_suggested():
    assert suggest_name("plann", ["plan", "play"], "none") == "did you mean `plan`?"
    assert suggest_name("x", iter(["plan", "play"]), "none") == "use one of: plan, play"
    assert suggest_name("x", [], "none") == "none"


def test_personas_and_their_clis_are_found():
    context = make_context()
    assert context.step.id == "build"
    assert context.find_persona("builder") == Persona(adapter="codex")
    assert context.find_persona(None) == context.find_persona("default") == Persona()
    assert context.find_persona("other") is None
    assert context.find_harness("builder") == "codex"
    assert context.find_harness("planner") == context.find_harness(None) == "gemini"


def test_a_cli_is_unknown_if_agents_use_several_or_none():
    for agents in ("{a: {harness: codex}, b: {harness: gemini}}", "{}"):
        text = TEXT.replace("{trades: {harness: gemini}, docs: {harness: gemini}}", agents)
        assert make_context(text).find_harness("planner") is None
        assert make_context(text).find_harness("builder") == "codex"


def test_an_error_names_the_step_and_the_line():
    error = make_context().refuse("id", message="it is wrong", hint="correct it")
    assert str(error) == "rekindle.yaml:8: step build: it is wrong"
    assert error.hint == "correct it"
