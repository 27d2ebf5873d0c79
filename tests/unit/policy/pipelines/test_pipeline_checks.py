"""A pipeline that cannot run is refused with its line, and with what to write instead."""

import re

import pytest

from rekindle.config import load_project
from rekindle.documents import manifest
from rekindle.errors import ManifestError
from rekindle.policy.pipelines.pipeline_checks import require_valid_pipelines
from rekindle.policy.pipelines.step_checks import require_valid_step
from rekindle.policy.pipelines.step_context import StepContext
from rekindle.policy.pipelines.worker_names import NAME_ROOM

HEAD = """\
version: 1
agents: {trades: {harness: claude-code}}
personas:
  planner: {permissions: {allowed_tools: [Read, Write]}}
  builder: {adapter: codex}
  reader: {permissions: {allowed_tools: [Read, Grep, Glob]}}
pipelines:
  ship:
"""
"""The manifest before the keys of the pipeline `ship`. Its lines are 1 to 8."""
PLAN = "      - {id: plan, persona: planner, prompt: Plan., outputs: {items: items.json}}\n"


def check(text: str) -> manifest.Manifest:
    parsed, marked = manifest.read_manifest(text)
    require_valid_pipelines(parsed, marked)
    return parsed


def refuse(text: str) -> ManifestError:
    with pytest.raises(ManifestError) as caught:
        check(text)
    return caught.value


def steps(*lines: str) -> str:
    """Return a manifest with these steps, of which the first is in line 10."""
    return f"{HEAD}    steps:\n" + "".join(f"      - {{{line}}}\n" for line in lines)


def after_plan(line: str) -> str:
    """Return a manifest with a step after `plan`; the step is in line 11."""
    return f"{HEAD}    steps:\n{PLAN}      - {{id: build, depends_on: [plan], {line}}}\n"


def matrix(keys: str, prompt: str = "Build.") -> str:
    return after_plan(f"prompt: '{prompt}', strategy: {{matrix: {{{keys}}}}}")


CASES = {
    # The order of the steps.
    "an unknown dependency": (
        steps("id: plan, prompt: x", "id: build, depends_on: [plna], prompt: x"),
        11,
        "step build: there is no step 'plna' to depend on",
        "did you mean `plan`?",
    ),
    "a dependency in a pipeline of one step": (
        steps("id: plan, depends_on: [other], prompt: x"),
        10,
        "step plan: there is no step 'other' to depend on",
        "remove `depends_on:`",
    ),
    "a step that depends on itself": (
        steps("id: plan, depends_on: [plan], prompt: x"),
        10,
        "step plan: it depends on itself",
        "remove its own id from `depends_on:`",
    ),
    "a dependency named twice": (
        steps("id: plan, prompt: x", "id: build, depends_on: [plan, plan], prompt: x"),
        11,
        "step build: it names 'plan' twice in `depends_on:`",
        "name each step once",
    ),
    "a cycle": (
        steps(
            "id: start, prompt: x",
            "id: one, depends_on: [start, three], prompt: x",
            "id: two, depends_on: [one], prompt: x",
            "id: three, depends_on: [two], prompt: x",
        ),
        11,
        "step one: its dependencies form a cycle: one → three → two → one",
        "remove one of these dependencies; to repeat work, use `until:` or `retry:`",
    ),
    "two steps with one id": (
        steps("id: plan, prompt: x", "id: plan, run: [true]".replace("[true]", "['true']")),
        11,
        "step plan: there is already a step with this id",
        "give each step of a pipeline its own id",
    ),
    "no steps": (
        f"{HEAD}    steps: []\n",
        9,
        "pipeline ship has no steps",
        "add one, such as `- {id: plan, prompt: Write a plan.}`",
    ),
    # Names.
    "an invalid id": (
        steps("id: Plan, prompt: x"),
        10,
        "'Plan' is not a valid step id",
        "use up to 63 of a-z, 0-9, - and _, starting with a letter",
    ),
    "an id that starts with a number": (
        steps("id: 2nd, prompt: x"),
        10,
        "'2nd' is not a valid step id",
        "use up to 63 of a-z, 0-9, - and _, starting with a letter",
    ),
    "an invalid pipeline name": (
        steps("id: plan, prompt: x").replace("  ship:", "  Ship it:"),
        8,
        "'Ship it' is not a valid pipeline name",
        "use up to 63 of a-z, 0-9, - and _, starting with a letter or a digit",
    ),
    "an invalid output name": (
        steps("id: plan, prompt: x, outputs: {a.b: c}"),
        10,
        "'a.b' is not a valid output name",
        "use up to 63 letters, digits, - and _, starting with a letter",
    ),
    "names that are too long together": (
        steps(f"id: {'p' * (NAME_ROOM - 3)}, prompt: x"),
        10,
        f"step {'p' * (NAME_ROOM - 3)}: the name of its agent would be longer than 63 characters",
        "shorten the id, or the pipeline's name 'ship', by 1 character",
    ),
    "an agent with a worker's name": (
        steps("id: plan, prompt: x").replace("{trades:", "{ship-2-plan:"),
        2,
        "the name 'ship-2-plan' belongs to workers of the pipeline 'ship'",
        "choose a name that does not start with `ship-` and a number",
    ),
    "a pipeline with a worker's name": (
        f"{steps('id: plan, prompt: x')}  ship-1-a: {{steps: [{{id: b, prompt: x}}]}}\n",
        11,
        "the name 'ship-1-a' belongs to workers of the pipeline 'ship'",
        "choose a name that does not start with `ship-` and a number",
    ),
    # The task.
    "prompt and run": (
        steps("id: plan, prompt: x, run: just test"),
        10,
        "step plan: it has both `prompt:` and `run:`",
        (
            "use `prompt:` for an agent or `run:` for a command, and put the other into a step "
            "of its own"
        ),
    ),
    "neither prompt nor run": (
        steps("id: plan, persona: planner"),
        10,
        "step plan: it has neither `prompt:` nor `run:`",
        "add `prompt: TEXT` for an agent, or `run: COMMAND`",
    ),
    "an empty command": (
        steps("id: plan, run: []"),
        10,
        "step plan: `run:` is empty",
        "write `run: [just, lint]`",
    ),
    "a command for a shell": (
        steps("id: plan, run: 'make && make test'"),
        10,
        "`run:` needs a shell for `&&`, but Rekindle runs it without one",
        (
            'write `run: [sh, -c, "make && make test"]`, or quote the characters that are meant '
            "literally"
        ),
    ),
    "an empty prompt": (
        steps("id: plan, prompt: ' '"),
        10,
        "step plan: its prompt is empty",
        "write the task into `prompt:`",
    ),
    "a path as a prompt": (
        steps("id: plan, prompt: prompts/plan.md"),
        10,
        "step plan: its prompt is the text 'prompts/plan.md', not the file",
        "write `prompt: {file: prompts/plan.md}`; only an agent's `prompt:` is a path",
    ),
    "a prompt file outside the project": (
        steps("id: plan, prompt: {file: ../plan.md}"),
        10,
        "step plan: its prompt file '../plan.md' leaves the folder",
        "name a file in the project, such as `prompt: {file: prompts/plan.md}`",
    ),
    "a key that a command cannot use": (
        steps("id: plan, run: just test, cycles: 3"),
        10,
        "step plan: `cycles:` has no effect on a command",
        "remove `cycles:`, or use `prompt:` instead of `run:`",
    ),
    "a command with a handoff": (
        steps("id: plan, run: just test, handover: {compaction: off}"),
        10,
        "step plan: `handover:` has no effect on a command",
        "remove `handover:`, or use `prompt:` instead of `run:`",
    ),
    "a command with a price": (
        steps("id: plan, run: just test, budget: {usd: 3}"),
        10,
        "step plan: a command has no cost in dollars or tokens",
        "use `budget: {hours: N}`, or remove it",
    ),
    # Personas.
    "an unknown persona": (
        steps("id: plan, prompt: x, persona: planer"),
        10,
        "step plan: there is no persona named 'planer'",
        "did you mean `planner`?",
    ),
    "an unknown persona that merges": (
        after_plan(
            "prompt: x, strategy: {matrix: {from: plan.items}}, merge: {conflicts: agent, "
            "persona: elsewhere}"
        ),
        11,
        "step build: there is no persona named 'elsewhere'",
        "use one of: planner, builder, reader",
    ),
    "an unknown persona that summarizes": (
        steps("id: plan, prompt: x, handover: {compaction: {persona: writer}}"),
        10,
        "step plan: there is no persona named 'writer'",
        "use one of: planner, builder, reader",
    ),
    "a persona without a CLI": (
        steps("id: plan, prompt: x").replace(
            "{harness: claude-code}", "{harness: claude-code}, docs: {harness: gemini}"
        ),
        10,
        "step plan: its agent CLI is not known, because the agents use claude-code, gemini",
        "add `adapter: claude-code` to the persona 'default'",
    ),
    "a merging persona without a CLI": (
        after_plan(
            "run: just build, strategy: {matrix: {from: plan.items}}, "
            "merge: {conflicts: agent, persona: planner}"
        )
        .replace("agents: {trades: {harness: claude-code}}", "agents: {}")
        .replace("persona: planner, prompt", "persona: builder, prompt"),
        11,
        "step build: its agent CLI is not known, because there are no agents",
        "add `adapter: claude-code` to the persona 'planner'",
    ),
    # Outputs and contracts.
    "an output above the folder": (
        steps("id: plan, prompt: x, outputs: {items: a/../../b}"),
        10,
        "step plan: its output 'a/../../b' leaves the folder",
        "name a file in the step's folder, such as `items: out/items.json`",
    ),
    "an output outside the folder": (
        steps("id: plan, prompt: x, outputs: {items: /tmp/b}"),
        10,
        "step plan: its output '/tmp/b' is outside the folder",
        "name a file in the step's folder, such as `items: out/items.json`",
    ),
    "an output in the repository": (
        steps("id: plan, prompt: x, outputs: {items: ./.git/config}"),
        10,
        "step plan: its output './.git/config' is in .git, which is not for steps",
        "name a file in the step's folder, such as `items: out/items.json`",
    ),
    "two outputs in one file": (
        steps("id: plan, prompt: x, outputs: {one: a.json, two: a.json}"),
        10,
        "step plan: its outputs 'one' and 'two' are the same file",
        "give each output its own file",
    ),
    "an output of a persona that cannot write": (
        steps("id: plan, prompt: x, persona: reader, outputs: {report: report.md}"),
        10,
        "step plan: its persona 'reader' may not write files",
        "allow it `Write` or `Edit` in `permissions: allowed_tools:`, or remove the outputs",
    ),
    "a contract's source outside the folder": (
        steps("id: plan, prompt: x, handover: {contract: [{type: non_empty_file, source: ~/a}]}"),
        10,
        "step plan: the contract's `source: ~/a` is outside the folder",
        "name a file in the step's folder",
    ),
    "a contract's schema outside the project": (
        steps(
            "id: plan, prompt: x, handover: {contract: {type: json_schema, source: a, "
            "schema_path: ../b}}"
        ),
        10,
        "step plan: the contract's `schema_path: ../b` leaves the folder",
        "name a file in the project",
    ),
    "a contract without its key": (
        steps("id: plan, prompt: x, handover: {contract: {type: json_schema, source: a}}"),
        10,
        "step plan: the contract json_schema has no `schema_path`",
        "write `source` and `schema_path` for json_schema",
    ),
    "a contract with another one's key": (
        steps(
            "id: plan, prompt: x, handover: {contract: {type: test_suite, command: a, source: b}}"
        ),
        10,
        "step plan: the contract test_suite does not use `source`",
        "write `command` for test_suite",
    ),
    # The matrix and merges.
    "a source without a dot": (
        matrix("from: plan"),
        11,
        "step build: 'plan' does not name an output of a step",
        "write `from: plan.items`",
    ),
    "a file as a source": (
        matrix("from: items"),
        11,
        "step build: 'items' does not name an output of a step",
        "write `from: plan.items`",
    ),
    "a source that is not a step": (
        matrix("from: plam.items"),
        11,
        "step build: 'plam' in `from: plam.items` is not a step",
        "did you mean `plan`?",
    ),
    "a source that is not an ancestor": (
        matrix("from: plan.items").replace("depends_on: [plan], ", ""),
        11,
        "step build: 'plan' in `from: plan.items` is not a step before this one",
        "add plan to `depends_on:`",
    ),
    "an output that the source lacks": (
        matrix("from: plan.item"),
        11,
        "step build: step plan has no output 'item'",
        "did you mean `items`?",
    ),
    "a matrix from a matrix": (
        matrix("from: plan.items") + "      - {id: again, depends_on: [build], prompt: x, "
        "strategy: {matrix: {from: build.items}}}\n",
        12,
        "step again: each worker of build writes its own 'items'",
        "add a step after build that writes one list, and use its output",
    ),
    "a key of the matrix in the step": (
        after_plan("prompt: x, max_concurrency: 2"),
        11,
        "unknown key 'pipelines.ship.steps.1.max_concurrency'",
        "write it below `strategy: {matrix: …}`",
    ),
    "a key of the matrix in the strategy": (
        after_plan("prompt: x, strategy: {fail_fast: true}"),
        11,
        "unknown key 'pipelines.ship.steps.1.strategy.fail_fast'",
        "write it below `strategy: {matrix: …}`",
    ),
    "a strategy without a matrix": (
        after_plan("prompt: x, strategy: {}"),
        11,
        "step build: `strategy:` has no matrix",
        "write `strategy: {matrix: {from: STEP.OUTPUT}}`, or remove it",
    ),
    "attempts in the step": (
        after_plan("prompt: x, attempts: 2"),
        11,
        "unknown key 'pipelines.ship.steps.1.attempts'",
        "write it below `retry:`",
    ),
    "a merge of one result": (
        after_plan("prompt: x, merge: {conflicts: drop}"),
        11,
        "step build: it has nothing to merge",
        "use `merge:` with `strategy: {matrix: …}` or with several steps in `depends_on:`",
    ),
    "a persona for a merge by a person": (
        after_plan("prompt: x, strategy: {matrix: {from: plan.items}}, merge: {persona: builder}"),
        11,
        "step build: `merge.persona` is only for `conflicts: agent`",
        "write `merge: {conflicts: agent, persona: NAME}`, or remove the persona",
    ),
    "a merge without a persona": (
        after_plan(
            "run: just build, strategy: {matrix: {from: plan.items}}, merge: {conflicts: agent}"
        ),
        11,
        "step build: a command has no persona that could merge",
        "write `merge: {conflicts: agent, persona: NAME}`",
    ),
    "a merge by a persona that cannot write": (
        after_plan(
            "prompt: x, persona: reader, strategy: {matrix: {from: plan.items}}, "
            "merge: {conflicts: agent}"
        ),
        11,
        "step build: the persona 'reader' may not write files, so it cannot merge",
        "name another persona in `merge:`, or allow it `Write` or `Edit`",
    ),
    "a file outside the project to copy": (
        f"{HEAD}    copy: [.env, /etc/passwd]\n    steps: [{{id: plan, prompt: x}}]\n",
        9,
        "pipeline ship: '/etc/passwd' is outside the folder",
        "name a file in the project, such as `copy: [.env]`",
    ),
    # Names in prompts.
    "an unknown name in a prompt": (
        steps("id: plan, prompt: 'Do {{ inptu }}.'"),
        10,
        "step plan: its prompt uses `{{ inptu }}`, but it is not known",
        "did you mean `{{ input }}`?",
    ),
    "an item outside a matrix": (
        steps("id: plan, prompt: 'Do {{ item.task }}.'"),
        10,
        "step plan: its prompt uses `{{ item.task }}`, but the step has no matrix",
        "add `strategy: {matrix: {from: STEP.OUTPUT}}`, or remove the name",
    ),
    "a step that is not an ancestor in a prompt": (
        steps("id: plan, prompt: x", "id: build, prompt: 'See {{ steps.plan.diff }}.'"),
        11,
        (
            "step build: its prompt uses `{{ steps.plan.diff }}`, but 'plan' is not a step "
            "before this one"
        ),
        "the steps before it: none; add it to `depends_on:`",
    ),
    "an output that does not exist in a prompt": (
        matrix("from: plan.items", "See {{ steps.plan.outputs.list }}."),
        11,
        (
            "step build: its prompt uses `{{ steps.plan.outputs.list }}`, but step plan has no "
            "output 'list'"
        ),
        "its outputs: items",
    ),
    "an output without a name in a prompt": (
        matrix("from: plan.items", "See {{steps.plan.outputs}}."),
        11,
        (
            "step build: its prompt uses `{{ steps.plan.outputs }}`, but it is not complete or too "
            "long"
        ),
        "write `{{ steps.plan.outputs.NAME }}` or `{{ steps.plan.diff }}`",
    ),
}


@pytest.mark.parametrize(("text", "line", "message", "hint"), CASES.values(), ids=CASES)
def test_a_pipeline_that_cannot_run_is_refused(text, line, message, hint):
    error = refuse(text)
    assert str(error) == f"rekindle.yaml:{line}: {message}"
    assert error.hint == hint


@pytest.mark.parametrize(
    "text",
    [
        steps("id: plan, prompt: x", "id: check, depends_on: [plan], run: just test"),
        steps("id: plan, prompt: 'Write \\{{ name }} literally. {{ input }}'"),
        steps(f"id: {'p' * (NAME_ROOM - 4)}, prompt: x"),
        steps("id: plan, run: just test, budget: {hours: 1}, handover: {contract: []}"),
        steps("id: plan, prompt: x, persona: default, handover: {compaction: off}"),
        steps("id: plan, prompt: x, handover: {compaction: {persona: summarizer}}"),
        steps("id: plan, prompt: {file: prompts/plan.md}"),
        matrix("from: plan.items, key: id, fail_fast: on, needs: any", "{{ item }}{{ item.a.b }}"),
        matrix("from: plan.items", "{{ steps.plan.outputs.items }} {{ steps.plan.failed }}"),
        after_plan("prompt: x, strategy: {matrix: {from: plan.items}}, merge: {conflicts: drop}"),
        steps(
            "id: one, prompt: x",
            "id: two, prompt: x",
            "id: three, depends_on: [one, two], prompt: x, merge: {conflicts: agent}",
        ),
        steps("id: build, depends_on: [plan], prompt: x", "id: plan, prompt: x"),
        "version: 1\npipelines: {}\n",
    ],
)
def test_a_pipeline_that_can_run_is_accepted(text):
    assert check(text).version == 1


def test_a_step_may_use_only_the_steps_before_it():
    parsed, marked = manifest.read_manifest(matrix("from: plan.items"))
    context = StepContext(parsed, marked, "ship", 1)
    require_valid_step(context, {"plan"})
    with pytest.raises(ManifestError, match="is not a step before this one"):
        require_valid_step(context, set())


def test_every_command_that_loads_the_manifest_checks_its_pipelines(tmp_path):
    text, line, message, _ = CASES["a cycle"]
    (tmp_path / "rekindle.yaml").write_text(text)
    with pytest.raises(ManifestError, match=re.escape(f"rekindle.yaml:{line}: {message}")):
        load_project(tmp_path)


SEED = """\
version: 1
runtime:
  relay:
    token_threshold_percent: 80
    strategy: summarize_to_checkpoint
personas:
  summarizer:
    adapter: claude
    system_prompt_file: .wave/personas/summarizer.md
    temperature: 0.0
    permissions:
      allowed_tools: ["Read"]
      deny: ["Write(*)", "Bash(*)"]
pipelines:
  seed:
    steps:
      - id: implement
        handover:
          compaction:
            trigger: "token_limit_80%"
            persona: summarizer
"""
"""The manifest fragments of the specification that names these keys."""


def test_the_fragments_of_the_specification_load():
    """The fragment with a step lacks a task, which is the only thing to add to it."""
    assert manifest.parse(SEED).pipelines["seed"].steps[0].id == "implement"
    assert refuse(SEED).message == "step implement: it has neither `prompt:` nor `run:`"
    task = "- id: implement\n        prompt: Build it.\n        persona: summarizer"
    parsed = check(SEED.replace("- id: implement", task))
    compaction = parsed.pipelines["seed"].steps[0].handover.compaction
    assert (compaction.trigger, compaction.persona) == ("token_limit_80%", "summarizer")
