"""Provide a worker on a fleet with its prompt and the files that the prompt names.

The files are outputs of earlier steps. They are pushed as a commit, and the worker's host writes
them next to the worker's clone. The prompt names them by a path relative to the clone, because the
host is not known yet.
"""

from pathlib import Path, PurePosixPath

from rekindle.documents.manifest_pipelines import Matrix
from rekindle.documents.pipelines.pipeline_events import WorkerBegan
from rekindle.fleet.hosts.host_folder import INPUTS
from rekindle.fleet.pipelines.host_run import HostRun
from rekindle.system.files import durable_files
from rekindle.thresholds.pipeline_limits import MATRIX_BYTES, STEP_OUTPUT_BYTES
from rekindle.wiring.pipelines.worker_tasks import WorkerTasks


def prepare_inputs(run: HostRun, began: WorkerBegan) -> tuple[str, str]:
    """Return a worker's prompt, and the ref with its inputs, or "" if it has none."""
    run.fetch()
    run.write_outputs()
    _write_items(run, began.step)
    tasks = WorkerTasks(run.folder, run.definition, run.clone)
    within = PurePosixPath(run.registered.agent.within)
    shown = "/".join([*[".."] * (1 + len(within.parts)), INPUTS])
    prompt = tasks.compose(run.state, began).replace(str(run.folder.outputs), shown)
    files = [
        (str(path.relative_to(run.folder.outputs)), path)
        for path in sorted(run.folder.outputs.rglob("*"))
        if path.is_file() and _is_named(path.relative_to(run.folder.outputs), shown, prompt)
    ]
    if not files:
        return prompt, ""
    blobs = [(name, run.store_blob(_read_output(path))) for name, path in files]
    ref = f"{run.refs}_inputs/{began.agent}/{began.attempt}"
    run.push(ref, run.commit_files(blobs, "", f"Inputs of {began.agent}\n"))
    return prompt, ref


def _is_named(path: Path, shown: str, prompt: str) -> bool:
    """Return whether a prompt mentions a file or one of its folders."""
    return any(f"{shown}/{name}" in prompt for name in (path, *path.parents[:-1]))


def _read_output(path: Path) -> bytes:
    return durable_files.read_user_file(path, STEP_OUTPUT_BYTES)


def _write_items(run: HostRun, step: str) -> None:
    """Write the items of a matrix step on this host, because another host may have read them."""
    matrix = run.definition.find_step(step).matrix
    if matrix is not None and step in run.state.items:
        data = durable_files.read_user_file(find_list(run, matrix), MATRIX_BYTES + 1)
        run.folder.write_items(step, data)


def find_list(run: HostRun, matrix: Matrix) -> Path:
    """Return the path of a matrix's item list in the run's folder."""
    source, _, output = matrix.source.partition(".")
    file = (run.definition.find_step(source).outputs or {})[output]
    return run.folder.find_output(source, output, file, None)
