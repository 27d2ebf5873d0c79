"""The keys of pipelines: names, commands, and keys in the wrong place."""

import pytest

from rekindle.documents import manifest
from rekindle.documents.manifest_pipelines import (
    PromptFile,
    StepContract,
    list_commands,
    list_steps,
    refuse_invalid_names,
    refuse_misplaced_keys,
)
from rekindle.errors import ManifestError
from rekindle.formats import yaml_lines

TEXT = """\
version: 1
pipelines:
  ship:
    prepare: npm ci
    steps:
      - id: build
        run: just build
        until: just lint
        prompt: {file: a.md}
        handover:
          contract: {type: test_suite, command: just test}
      - id: judge
        handover:
          contract:
            - {type: non_empty_file, source: a}
            - {type: test_suite, command: "go 'vet all'"}
"""


def test_one_line_commands_are_split_into_words():
    parsed, marked = manifest.read_manifest(TEXT)
    pipeline = parsed.pipelines["ship"]
    build, judge = pipeline.steps
    assert pipeline.prepare == ["npm", "ci"]
    assert (build.run, build.until) == (["just", "build"], ["just", "lint"])
    assert build.contracts == [StepContract("test_suite", command=["just", "test"])]
    assert judge.contracts[1].command == ["go", "vet all"]
    assert build.prompt == PromptFile("a.md")
    assert (build.matrix, judge.matrix) == (None, None)
    path = ("pipelines", "ship", "steps", 0, "run")
    assert marked.command_lines[path] == "just build"


@pytest.mark.parametrize(
    "command", ["prepare: npm ci", "run: just build", "until: just lint", "command: just test"]
)
def test_a_command_that_needs_a_shell_is_refused_with_its_line(command):
    assert TEXT.count(command) == 1
    with pytest.raises(ManifestError, match="needs a shell") as caught:
        manifest.parse(TEXT.replace(command, f"{command} | tee log"))
    assert caught.value.line == TEXT[: TEXT.index(command)].count("\n") + 1


def test_steps_and_commands_are_found_in_any_data():
    """The data is not validated yet."""
    for text in ("5", "{}", "pipelines: 5", "pipelines: {a: 5, b: {steps: {}}, c: {steps: [5]}}"):
        data = yaml_lines.parse(text, "f").data
        assert list_steps(data) == []
        assert [path[-1] for path, _ in list_commands(data)] in ([], ["prepare"] * 3)
    data = yaml_lines.parse("pipelines: {a: {steps: [5, {id: x}]}}", "f").data
    assert list_steps(data) == [(("pipelines", "a", "steps", 1), {"id": "x"})]


@pytest.mark.parametrize(
    ("name", "step", "output", "line", "words"),
    [
        ("ship", "build", "items", None, ""),
        ("2-ship_it", "b", "_a-1", None, ""),
        ("Ship", "build", "items", 3, "is not a valid pipeline name"),
        ("ship", "1build", "items", 6, "is not a valid step id"),
        ("ship", "b.c", "items", 6, "is not a valid step id"),
        ("ship", "b" * 64, "items", 6, "is not a valid step id"),
        ("ship", "build", "a.b", 7, "is not a valid output name"),
        ("ship", "build", "1", 7, "is not a valid output name"),
    ],
)
def test_invalid_names_are_refused_with_their_line(name, step, output, line, words):
    text = (
        f"version: 1\npipelines:\n  {name}:\n    base: main\n    steps:\n"
        f"      - id: {step}\n        outputs: {{{output}: file}}\n"
    )
    if line is None:
        parsed, marked = manifest.read_manifest(text)
        assert refuse_invalid_names(parsed.pipelines, marked) is None
        return
    with pytest.raises(ManifestError, match=words) as caught:
        manifest.parse(text)
    assert caught.value.line == line
    assert "63" in caught.value.hint


@pytest.mark.parametrize(
    ("step", "key", "place"),
    [
        ("needs: any", "needs", "`strategy: {matrix: …}`"),
        ("key: id", "key", "`strategy: {matrix: …}`"),
        ("strategy: {from: a.b}", "strategy.from", "`strategy: {matrix: …}`"),
        ("matrix: {}", "matrix", "`strategy:`"),
        ("compaction: off", "compaction", "`handover:`"),
        ("contract: {}", "contract", "`handover:`"),
        ("conflicts: drop", "conflicts", "`merge:`"),
        ("attempts: 2", "attempts", "`retry:`"),
    ],
)
def test_a_key_in_the_wrong_place_is_refused_with_the_right_one(step, key, place):
    marked = yaml_lines.parse(f"pipelines:\n  a:\n    steps:\n    - id: x\n      {step}\n", "f")
    with pytest.raises(ManifestError) as caught:
        refuse_misplaced_keys(marked)
    assert str(caught.value) == f"f:5: unknown key 'pipelines.a.steps.0.{key}'"
    assert caught.value.hint == f"write it below {place}"


@pytest.mark.parametrize(
    ("base", "is_valid"), [("main", True), ("HEAD~2", True), ("-x", False), ("a b", False)]
)
def test_a_base_is_the_name_of_a_commit(base, is_valid):
    text = f"version: 1\npipelines: {{a: {{base: {base}, steps: []}}}}\n"
    if is_valid:
        assert manifest.parse(text).pipelines["a"].base == base
    else:
        with pytest.raises(ManifestError, match=r"pipelines\.a\.base"):
            manifest.parse(text)
