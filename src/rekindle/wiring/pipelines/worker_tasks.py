"""Collect the content of a worker's prompt: its item, and the results of earlier steps."""

import msgspec

from rekindle.documents.manifest_pipelines import Matrix
from rekindle.documents.pipelines.pipeline_events import ItemsFound, WorkerBegan
from rekindle.errors import StoreError
from rekindle.policy.pipelines.matrix_items import MatrixList, read_items
from rekindle.policy.pipelines.merge_prompt import compose_merge_prompt
from rekindle.policy.pipelines.pipeline_moves import FindItems
from rekindle.policy.pipelines.pipeline_state import PipelineState
from rekindle.policy.pipelines.run_definition import RunDefinition
from rekindle.policy.pipelines.step_order import list_ancestors
from rekindle.policy.pipelines.step_status import (
    MERGE_KEYS,
    DoneStep,
    FailedStep,
    find_conflicting,
    find_statuses,
    list_failed_workers,
)
from rekindle.policy.pipelines.worker_prompt import (
    NOTHING,
    StepTexts,
    WorkerTask,
    compose_prompt,
    find_missing_field,
)
from rekindle.stores.pipelines.run_folder import RunFolder
from rekindle.system import clock
from rekindle.system.files import durable_files
from rekindle.system.git.tree_snapshot import WorkingCopy
from rekindle.thresholds.pipeline_limits import MATRIX_BYTES


def find_unusable_list(folder: RunFolder, definition: RunDefinition, step: str) -> str:
    """Return why a later matrix step cannot use one of a step's outputs, or "".

    The run continues without an optional step, so its list must not fail another step.
    """
    for other in definition.definition.steps:
        source, _, output = other.matrix.source.partition(".") if other.matrix else ("", "", "")
        if source == step and not other.optional:
            _, listed = _read_list(folder, definition, other.id)
            if listed.why:
                file = (definition.find_step(step).outputs or {})[output]
                return f"its output {file}, for the step {other.id}: {listed.why}"
    return ""


def _read_list(
    folder: RunFolder, definition: RunDefinition, step: str
) -> tuple[bytes | None, MatrixList]:
    """Return a matrix step's list of items and its file, or None if it cannot be read."""
    matrix = definition.find_step(step).matrix or Matrix(source="")
    source, _, output = matrix.source.partition(".")
    file = (definition.find_step(source).outputs or {})[output]
    try:
        data = durable_files.read_user_file(
            folder.find_output(source, output, file, None), MATRIX_BYTES + 1
        )
    except StoreError as error:
        return None, MatrixList("", why=f"{file}: {error.reason}")
    listed = read_items(data, matrix.key)
    if not listed.why:
        why = find_missing_field(definition.prompts.get(step, ""), listed.items)
        listed = msgspec.structs.replace(listed, why=why)
    return data, listed


class WorkerTasks:
    """Composes the prompts of one run."""

    def __init__(self, folder: RunFolder, definition: RunDefinition, source: WorkingCopy) -> None:
        self._folder, self._definition, self._source = folder, definition, source

    def find_items(self, move: FindItems) -> ItemsFound:
        """Read a matrix step's list of items once, and store it."""
        data, listed = _read_list(self._folder, self._definition, move.step)
        if data is None:
            return self._make_found(move, listed)
        # Store the list before the event that makes it final.
        self._folder.write_items(move.step, data)
        return self._make_found(move, listed)

    def compose(self, state: PipelineState, began: WorkerBegan) -> str:
        """Return a worker's prompt for an attempt."""
        worker = state.find_worker(began.step, began.worker)
        step = self._definition.find_step(began.step)
        for stage, key in MERGE_KEYS.items():
            if began.worker == key:
                parts = find_conflicting(self._definition.plan, state, began.step, stage)
                return compose_merge_prompt(
                    began.step, stage, parts, attempt=began.attempt, why=worker.why
                )
        if step.run is not None:
            return f"Rekindle runs the command of the step {began.step}.\n"
        task = WorkerTask(
            prompt=self._definition.prompts[began.step],
            input=self._definition.input,
            item=self._find_item(began) if step.matrix else None,
            steps=self._find_texts(state, began.step),
            outputs=step.outputs or {},
            attempt=began.attempt,
            why=worker.why,
        )
        return compose_prompt(task)

    def _make_found(self, move: FindItems, listed: MatrixList) -> ItemsFound:
        keys = () if listed.why else listed.keys
        return ItemsFound(
            ts=clock.read_clock(), step=move.step, workers=keys, sha=listed.sha, why=listed.why
        )

    def _find_item(self, began: WorkerBegan) -> object:
        matrix = self._definition.find_step(began.step).matrix
        data = self._folder.read_items(began.step)
        return read_items(data, matrix.key if matrix else None).find_item(began.worker)

    def _find_texts(self, state: PipelineState, step: str) -> dict[str, StepTexts]:
        """Return the texts that replace the names of earlier steps in a prompt."""
        plan = self._definition.plan
        statuses = find_statuses(plan, state)
        failed = list_failed_workers(statuses)
        before = list_ancestors({other.id: other.depends_on for other in plan.steps}, step)
        texts = {}
        for name in before:
            status = statuses[name]
            result = status.commit if isinstance(status, DoneStep | FailedStep) else ""
            texts[name] = StepTexts(
                outputs=self._find_outputs(name),
                diff=self._write_diff(state, name, result),
                failed=failed.get(name, ()),
            )
        return texts

    def _find_outputs(self, step: str) -> dict[str, str]:
        """Return the path of each output that a step has written."""
        definition = self._definition.find_step(step)
        is_matrix = definition.matrix is not None
        paths = {
            name: (self._folder.outputs / step / name)
            if is_matrix
            else self._folder.find_output(step, name, file, None)
            for name, file in (definition.outputs or {}).items()
        }
        return {name: str(path) for name, path in paths.items() if path.exists()}

    def _write_diff(self, state: PipelineState, step: str, result: str) -> str:
        """Write a step's changes as a patch, and return its path."""
        starts = [
            worker.start
            for (name, key), worker in state.workers.items()
            # The worker that merges a step's inputs starts before all of them are merged.
            if name == step and result and key not in MERGE_KEYS.values()
        ]
        path = self._folder.outputs / f"{step}.diff"
        if starts and not path.exists():
            patch = self._source.call("diff-tree", "-p", "--no-ext-diff", "-r", starts[0], result)
            durable_files.replace_file(path, patch)
        return str(path) if starts else NOTHING
