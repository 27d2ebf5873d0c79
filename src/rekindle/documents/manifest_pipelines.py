"""The `pipelines:` section of rekindle.yaml: steps, their order, and how their results are merged.

Missing keys are None. `policy/pipelines` has the defaults, and checks that the steps fit together.
"""

import re
from typing import Annotated, Any, Literal

import msgspec

from rekindle.documents.manifest_keys import Budget, CommandLine, Handover
from rekindle.documents.manifest_schedules import ScheduleKey
from rekindle.errors import ManifestError
from rekindle.formats.identifiers import AGENT_NAME
from rekindle.formats.validation import describe_key as _doc
from rekindle.formats.validation import join_path
from rekindle.formats.yaml_lines import KeyPath, MarkedData

STEP_ID_PATTERN = "[a-z][a-z0-9_-]{0,62}"
STEP_ID = re.compile(rf"{STEP_ID_PATTERN}\Z")
"""Pattern for a step's id. It starts with a letter, to be distinct from a run's number."""
OUTPUT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}\Z")
"""Pattern for an output's name, which prompts use between dots."""
_ID_HINT = "use up to 63 of a-z, 0-9, - and _, starting with a letter"

_MATRIX_HINT = "write it below `strategy: {matrix: …}`"
_MISPLACED = {
    **dict.fromkeys(("from", "max_concurrency", "key", "fail_fast", "needs"), _MATRIX_HINT),
    "matrix": "write it below `strategy:`",
    "attempts": "write it below `retry:`",
    "contract": "write it below `handover:`",
    "compaction": "write it below `handover:`",
    "conflicts": "write it below `merge:`",
}
"""Keys that people put at the wrong level of a step, with a hint for each."""

ContractType = Literal["json_schema", "test_suite", "non_empty_file"]
Conflicts = Literal["person", "agent", "drop"]
Needs = Literal["all", "any"]


class PromptFile(msgspec.Struct, frozen=True):
    file: Annotated[str, _doc("File with the prompt, in the project.", min_length=1)]


class StepContract(msgspec.Struct, frozen=True):
    """A check that a step's result must pass."""

    type: Annotated[
        ContractType,
        _doc(
            "The check: `json_schema` for `source` against `schema_path`, `test_suite` for a "
            "`command` that must exit with 0, or `non_empty_file` for `source`. For `json_schema`, "
            "install `rekindle-agents[schema]`."
        ),
    ]
    source: Annotated[str, _doc("File to check, in the step's folder.")] | None = None
    schema_path: Annotated[str, _doc("File with the JSON Schema, in the project.")] | None = None
    command: Annotated[
        CommandLine | None, _doc("Command for `test_suite`, which runs in the step's folder.")
    ] = None


class StepHandover(Handover, frozen=True):
    contract: Annotated[
        StepContract | list[StepContract] | None,
        _doc("Check that the result must pass, or a list of checks. All of them must pass."),
    ] = None


class StepRetry(msgspec.Struct, frozen=True):
    attempts: (
        Annotated[
            int,
            _doc(
                "Maximum number of attempts. Only a failed check uses up an attempt. The default "
                "is 1.",
                "count",
                ge=1,
            ),
        ]
        | None
    ) = None


class Matrix(msgspec.Struct, frozen=True):
    source: Annotated[
        str,
        _doc("Output that lists the items as JSON, such as `plan.items` for `items` of `plan`."),
    ] = msgspec.field(name="from")
    max_concurrency: (
        Annotated[
            int,
            _doc(
                "Maximum number of items in progress at the same time. The default is 4.",
                "count",
                ge=1,
            ),
        ]
        | None
    ) = None
    key: (
        Annotated[
            str,
            _doc(
                "Field of each item that names its worker. By default, items are numbered.",
                min_length=1,
            ),
        ]
        | None
    ) = None
    fail_fast: (
        Annotated[bool, _doc("Whether the first failed worker stops the others. Off by default.")]
        | None
    ) = None
    needs: (
        Annotated[
            Needs, _doc("Workers that must succeed: `all`, which is the default, or `any` of them.")
        ]
        | None
    ) = None


class Strategy(msgspec.Struct, frozen=True):
    matrix: Annotated[Matrix | None, _doc("Items to run the step for, once each.")] = None


class StepMerge(msgspec.Struct, frozen=True):
    conflicts: (
        Annotated[
            Conflicts,
            _doc(
                "What to do with changes that git cannot merge: `person` waits for you and is the "
                "default, `agent` starts a worker that merges them, and `drop` leaves them out."
            ),
        ]
        | None
    ) = None
    persona: (
        Annotated[
            str, _doc("Persona from `personas` that merges for `agent`. Defaults to the step's.")
        ]
        | None
    ) = None


class PipelineStep(msgspec.Struct, frozen=True):
    id: Annotated[
        str,
        msgspec.Meta(
            description="Name of the step: up to 63 of a-z, 0-9, `-` and `_`.",
            extra_json_schema={"pattern": f"^{STEP_ID_PATTERN}$"},
        ),
    ]
    depends_on: Annotated[list[str], _doc("Steps that must finish first.")] | None = None
    persona: Annotated[str, _doc("Persona from `personas` that works on the step.")] | None = None
    prompt: Annotated[
        str | PromptFile | None,
        _doc(
            "Prompt for the step: the text itself, or `{file: PATH}`. It may contain `{{ input "
            "}}`, `{{ item }}`, `{{ item.FIELD }}`, and for an earlier step `{{ "
            "steps.ID.outputs.NAME }}`, `{{ steps.ID.diff }}` and `{{ steps.ID.failed }}`. Write "
            "`\\{{` for literal braces."
        ),
    ] = None
    run: Annotated[CommandLine | None, _doc("Command to run instead of an agent.")] = None
    cycles: (
        Annotated[
            int,
            _doc(
                "Maximum number of cycles per attempt, or 0 for no limit. The default is 1.",
                "count",
                ge=0,
            ),
        ]
        | None
    ) = None
    until: Annotated[
        CommandLine | None, _doc("Command that exits with 0 once the step's work is done.")
    ] = None
    convergence: (
        Annotated[
            bool, _doc("Whether the agent must move from brainstorming to deciding to shipping.")
        ]
        | None
    ) = None
    budget: Annotated[Budget | None, _doc("Limits for each worker of the step.")] = None
    outputs: (
        Annotated[
            dict[str, str],
            _doc("Files that the step writes, by name. The paths are relative to its folder."),
        ]
        | None
    ) = None
    handover: Annotated[
        StepHandover | None,
        _doc("How to hand the work over between sessions, and how to check the result."),
    ] = None
    retry: Annotated[
        StepRetry | None, _doc("How often to repeat the step after a failed check.")
    ] = None
    optional: (
        Annotated[bool, _doc("Whether the pipeline continues if the step fails. Off by default.")]
        | None
    ) = None
    strategy: Annotated[Strategy | None, _doc("Whether the step runs once or once per item.")] = (
        None
    )
    merge: Annotated[
        StepMerge | None, _doc("How to merge the results of several workers or earlier steps.")
    ] = None

    @property
    def matrix(self) -> Matrix | None:
        return self.strategy.matrix if self.strategy else None

    @property
    def contracts(self) -> list[StepContract]:
        contract = self.handover.contract if self.handover else None
        return contract if isinstance(contract, list) else [contract] if contract else []


class Pipeline(msgspec.Struct, frozen=True):
    steps: Annotated[list[PipelineStep], _doc("The pipeline's steps.")]
    base: (
        Annotated[
            str,
            _doc(
                "Commit or branch that a run starts from. The default is `HEAD`.",
                pattern=r"^[^-\s][^\s\x00-\x1f]*$",
            ),
        ]
        | None
    ) = None
    input: (
        Annotated[
            Literal["required", "optional"],
            _doc(
                "Whether a run needs a text for `{{ input }}`: `required`, or `optional`, which is "
                "the default."
            ),
        ]
        | None
    ) = None
    budget: Annotated[
        Budget | None, _doc("Limits for a whole run. No worker starts once one is reached.")
    ] = None
    copy: (
        Annotated[
            list[str],
            _doc("Files that git ignores, such as `.env`, to copy into each worker's folder."),
        ]
        | None
    ) = None
    prepare: Annotated[
        CommandLine | None, _doc("Command to run once in each new folder, such as `npm ci`.")
    ] = None
    every: ScheduleKey = None


def list_steps(data: Any) -> list[tuple[KeyPath, dict[str, Any]]]:
    """Return the steps in a manifest's data, before validation, each with its path."""
    steps: list[tuple[KeyPath, dict[str, Any]]] = []
    for name, pipeline in to_mapping(to_mapping(data).get("pipelines")).items():
        listed = to_mapping(pipeline).get("steps")
        for number, step in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(step, dict):
                steps.append((("pipelines", name, "steps", number), step))
    return steps


def list_commands(data: Any) -> list[tuple[KeyPath, dict[str, Any]]]:
    """Return the path of each unvalidated command in `pipelines:`, and the mapping around it."""
    commands: list[tuple[KeyPath, dict[str, Any]]] = []
    for name, pipeline in to_mapping(to_mapping(data).get("pipelines")).items():
        commands.append((("pipelines", name, "prepare"), to_mapping(pipeline)))
    for path, step in list_steps(data):
        commands += [((*path, "run"), step), ((*path, "until"), step)]
        place = (*path, "handover", "contract")
        contract = to_mapping(step.get("handover")).get("contract")
        if isinstance(contract, list):
            commands += [
                ((*place, number, "command"), to_mapping(check))
                for number, check in enumerate(contract)
            ]
        else:
            commands.append(((*place, "command"), to_mapping(contract)))
    return commands


def refuse_misplaced_keys(marked: MarkedData) -> None:
    """Refuse keys at the wrong level of a step, with a hint about where they belong."""
    for path, step in list_steps(marked.data):
        strategy = to_mapping(step.get("strategy"))
        places: list[KeyPath] = [(*path, key) for key in step if key in _MISPLACED]
        places += [
            (*path, "strategy", key) for key in strategy if _MISPLACED.get(key) == _MATRIX_HINT
        ]
        for place in places:
            raise ManifestError(
                f"unknown key {join_path(place)!r}",
                file=marked.file,
                line=marked.line(place),
                hint=_MISPLACED[str(place[-1])],
            )


def refuse_invalid_names(pipelines: dict[str, Pipeline], marked: MarkedData) -> None:
    """Raise ManifestError with the line number if a pipeline, step or output name is invalid."""
    for name, pipeline in pipelines.items():
        if not AGENT_NAME.match(name):
            raise ManifestError(
                f"{name!r} is not a valid pipeline name",
                file=marked.file,
                line=marked.line(("pipelines", name)),
                hint="use up to 63 of a-z, 0-9, - and _, starting with a letter or a digit",
            )
        for number, step in enumerate(pipeline.steps):
            path = ("pipelines", name, "steps", number)
            if not STEP_ID.match(step.id):
                raise ManifestError(
                    f"{step.id!r} is not a valid step id",
                    file=marked.file,
                    line=marked.line((*path, "id")),
                    hint=_ID_HINT,
                )
            for output in step.outputs or {}:
                if not OUTPUT_NAME.match(output):
                    raise ManifestError(
                        f"{output!r} is not a valid output name",
                        file=marked.file,
                        line=marked.line((*path, "outputs", output)),
                        hint="use up to 63 letters, digits, - and _, starting with a letter",
                    )


def to_mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}
