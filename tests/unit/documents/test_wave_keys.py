"""Pipelines written for Wave: keys that mean the same are read, and the others are named."""

import pytest

from rekindle.documents import manifest
from rekindle.documents.manifest_pipelines import PromptFile
from rekindle.documents.wave_keys import translate_wave_keys
from rekindle.errors import ManifestError
from rekindle.formats import yaml_lines
from rekindle.policy.pipelines.pipeline_checks import require_valid_pipelines

WAVE = """\
version: 1
personas:
  navigator: {adapter: claude}
  craftsman: {adapter: claude}
pipelines:
  feature:
    steps:
      - id: plan
        persona: navigator
        memory:
          strategy: fresh
        exec:
          type: prompt
          source: "Plan: {{ input }}"
        output_artifacts:
          - name: tasks
            path: out/tasks.json
            type: json
        handover:
          contract:
            type: json_schema
            schema_path: contracts/tasks.json
            source: out/tasks.json
            must_pass: true
            on_failure: fail
      - id: execute
        persona: craftsman
        dependencies: [plan]
        retry:
          max_attempts: 3
        strategy:
          type: matrix
          items_source: plan/out/tasks.json
          item_id_key: id
          max_concurrency: 2
        exec:
          type: prompt
          source_path: prompts/execute.md
        handover:
          contracts:
            - type: testsuite
              command: go test ./...
            - type: non_empty_file
              source: report.md
          compaction:
            trigger: "token_limit_80%"
      - id: check
        dependencies: [execute]
        exec:
          type: command
          source: go vet ./... && echo ok
"""


def refuse(text: str) -> ManifestError:
    with pytest.raises(ManifestError) as caught:
        manifest.parse(text)
    return caught.value


def test_keys_that_mean_the_same_are_read():
    parsed, marked = manifest.read_manifest(WAVE)
    require_valid_pipelines(parsed, marked)
    plan, execute, check = parsed.pipelines["feature"].steps
    assert (plan.prompt, plan.outputs) == ("Plan: {{ input }}", {"tasks": "out/tasks.json"})
    assert (plan.contracts[0].type, plan.contracts[0].source) == ("json_schema", "out/tasks.json")
    assert (execute.depends_on, execute.prompt) == (["plan"], PromptFile("prompts/execute.md"))
    assert execute.retry.attempts == 3
    assert (execute.matrix.source, execute.matrix.key) == ("plan.tasks", "id")
    assert execute.matrix.max_concurrency == 2
    assert [contract.type for contract in execute.contracts] == ["test_suite", "non_empty_file"]
    assert execute.contracts[0].command == ["go", "test", "./..."]
    assert check.run == ["sh", "-c", "go vet ./... && echo ok"]


def test_a_renamed_key_keeps_its_line_and_no_other_key_changes():
    marked = yaml_lines.parse(WAVE, "f")
    translate_wave_keys(marked)
    step = ("pipelines", "feature", "steps", 1)
    lines = WAVE.splitlines()
    for path, text in [
        ((*step, "depends_on"), "dependencies: [plan]"),
        ((*step, "retry", "attempts"), "max_attempts: 3"),
        ((*step, "strategy", "matrix", "from"), "items_source: plan/out/tasks.json"),
        ((*step, "handover", "contract", 1, "source"), "source: report.md"),
        (("pipelines", "feature", "steps", 0, "outputs", "tasks"), "- name: tasks"),
    ]:
        assert lines[(marked.lines[path] or 0) - 1].strip() == text
    assert (*step, "dependencies") not in marked.lines
    plain = yaml_lines.parse("pipelines: {a: {steps: [{id: x, depends_on: [y]}]}}", "f")
    translate_wave_keys(plain)
    assert plain == yaml_lines.parse("pipelines: {a: {steps: [{id: x, depends_on: [y]}]}}", "f")


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("dependencies: [plan]", "dependencies: 5", "steps.1.depends_on: expected a list"),
        ("max_attempts: 3", "max_attempts: 0", "steps.1.retry.attempts: expected"),
        ("item_id_key: id", "item_id_key: 5", "steps.1.strategy.matrix.key: expected text"),
        ("source_path: prompts/execute.md", "source_path: 7", "steps.1.prompt.file: expected text"),
        ("type: non_empty_file", "type: empty_file", "contract.1.type: expected one of"),
    ],
)
def test_a_mistake_in_a_renamed_key_has_its_line(right, wrong, message):
    assert WAVE.count(right) == 1
    error = refuse(WAVE.replace(right, wrong))
    assert message in str(error)
    assert error.line == WAVE[: WAVE.index(right)].count("\n") + 1


@pytest.mark.parametrize(
    ("right", "wrong", "key", "hint"),
    [
        ("    steps:", "    kind: WavePipeline\n    steps:", "kind", "leave it out"),
        ("strategy: fresh", "inject_artifacts: []", "memory", "steps.ID.outputs.NAME"),
        (
            "        retry:",
            "        timeout_minutes: 5\n        retry:",
            "timeout_minutes",
            "hours",
        ),
        ("          type: matrix", "          item_key: task", "strategy.item_key", "the list"),
        ("max_attempts: 3", "policy: standard", "retry.policy", "retry: {attempts: N}"),
        ("must_pass: true", "must_pass: false", "contract.must_pass", "optional: true"),
        ("on_failure: fail", "on_failure: warn", "contract.on_failure", "`retry:` or `optional:`"),
        ("type: command", "type: command\n          args: -v", "exec.args", "`run:`"),
    ],
)
def test_a_key_without_an_equivalent_is_named_with_the_nearest_key(right, wrong, key, hint):
    assert WAVE.count(right) == 1
    text = WAVE.replace(right, wrong)
    error = refuse(text)
    assert error.message.startswith("unknown key 'pipelines.feature.")
    assert error.message.endswith(f"{key}'")
    assert hint in error.hint
    last = key.rpartition(".")[2]
    assert f"{last}:" in text.splitlines()[(error.line or 0) - 1]


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("dependencies: [plan]", "dependencies: [plan]\n        depends_on: [plan]", "repeats"),
        ("        output_art", "        outputs: {a: b}\n        output_art", "repeats"),
        ("type: command", "type: slash_command", "`exec:` of pipelines.feature.steps.2 cannot be"),
        ("&& echo ok", "{{ input }}", "`exec:` of pipelines.feature.steps.2 cannot be read"),
        ("path: out/tasks.json", "source: stdout", "`output_artifacts:` of"),
        ("type: matrix\n", "type: matrix\n          matrix: 5\n", "repeats `strategy.matrix"),
    ],
)
def test_what_cannot_be_renamed_is_refused(right, wrong, message):
    assert WAVE.count(right) == 1
    error = refuse(WAVE.replace(right, wrong))
    assert message in error.message
    assert error.line
    assert error.hint


@pytest.mark.parametrize(
    "step",
    [
        "5",
        "[a]",
        "{exec: 5}",
        "{handover: 5}",
        "{handover: {contract: [5]}}",
        "{strategy: []}",
        "{output_artifacts: 5}",
        "{retry: x}",
        "{memory: fresh}",
        "{strategy: {matrix: {from: 5}}}",
    ],
)
def test_odd_values_are_refused_like_any_other(step):
    assert refuse(f"version: 1\npipelines: {{a: {{steps: [{step}]}}}}\n").line == 2
