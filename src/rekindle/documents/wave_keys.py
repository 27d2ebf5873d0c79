"""Translate the pipeline keys of Wave, another orchestrator, to Rekindle's keys.

Equivalent keys are renamed before the manifest is validated, and keep their line numbers. All other
keys are refused with a hint that names Rekindle's closest key.
"""

from typing import Any

from rekindle.documents.manifest_pipelines import list_steps, to_mapping
from rekindle.errors import ManifestError
from rekindle.formats.validation import join_path
from rekindle.formats.yaml_lines import KeyPath, MarkedData

_RENAMED: dict[tuple[str, ...], tuple[str, ...]] = {
    ("dependencies",): ("depends_on",),
    ("handover", "contracts"): ("handover", "contract"),
    ("retry", "max_attempts"): ("retry", "attempts"),
    ("strategy", "max_concurrency"): ("strategy", "matrix", "max_concurrency"),
    ("strategy", "item_id_key"): ("strategy", "matrix", "key"),
    ("strategy", "items_source"): ("strategy", "matrix", "from"),
}
"""Step keys in Wave, with their equivalents in Rekindle."""
_IMPLIED: dict[tuple[str, ...], str | bool] = {
    ("memory", "strategy"): "fresh",
    ("strategy", "type"): "matrix",
    ("handover", "contract", "must_pass"): True,
    ("handover", "contract", "on_failure"): "fail",
}
"""Step keys in Wave, with the value that describes what Rekindle always does. Keys with this value
are dropped.
"""
_CONTRACT_TYPES = {
    "testsuite": "test_suite",
    "jsonschema": "json_schema",
}
"""Older names for contracts in Wave."""
_PIPELINE_HINTS = {
    "kind": "leave it out",
    "metadata": "leave it out; the pipeline's name is its key below `pipelines:`",
    "requires": "check for programs in `prepare:`",
    "skills": "describe them in the persona's `system_prompt_file`",
    "pipeline_outputs": "name each file in `outputs:` of the step that writes it",
    "chat_context": "leave it out",
    "max_step_visits": "use `retry: {attempts: N}` in a step",
}
_STEP_HINTS = {
    "memory": "name the outputs in the prompt: `{{ steps.ID.outputs.NAME }}`",
    "workspace": "leave it out, each worker has its own folder; see `base:` and `copy:`",
    "model": "set `model:` in the persona",
    "adapter": "set `adapter:` in the persona",
    "timeout_minutes": "use `budget: {hours: N}`",
    "type": "use `run:` for a command, or `prompt:`",
    "script": "use `run: [sh, -c, SCRIPT]`",
    "iterate": "use `strategy: {matrix: {from: STEP.OUTPUT}}`",
    "concurrency": "use `strategy: {matrix: {max_concurrency: N}}`",
    "max_concurrent_agents": "use `strategy: {matrix: {max_concurrency: N}}`",
    "validation": "add a step with `run:` before this one",
    "outcomes": "name the files in `outputs:`",
    "aggregate": "add a step that reads `{{ steps.ID.outputs.NAME }}`",
    "thread": "leave it out; an attempt continues its own session",
    "rework_only": "use `retry: {attempts: N}` in the step that may fail",
    "edges": "steps have no loops; use `until:` in a step",
    "loop": "steps have no loops; use `until:` in a step",
    "max_visits": "steps have no loops; use `until:` in a step",
    "branch": "steps have no conditions; use `optional: true`, or another pipeline",
    "gate": "steps have no gates; end the pipeline there, and start another one",
    "pipeline": "copy the other pipeline's steps into this one",
    "input": "name the outputs in the prompt: `{{ steps.ID.outputs.NAME }}`",
    "task": "use `prompt:`",
    "contexts": "describe them in the prompt",
}
_INNER_HINTS = {
    ("retry", "policy"): "use `retry: {attempts: N}`",
    ("retry", "backoff"): "leave it out; an attempt starts at once",
    ("retry", "on_failure"): "use `optional: true` if the pipeline should continue",
    ("retry", "rework_step"): "use `retry: {attempts: N}`; a retry gets the reason of the failure",
    ("strategy", "item_key"): "let the step write the list itself into the file",
    ("strategy", "stacked"): "leave it out; the results are merged",
    ("strategy", "child_pipeline"): "copy the other pipeline's steps into this one",
    ("handover", "contract", "max_retries"): "use `retry: {attempts: N}` in the step",
    ("handover", "contract", "schema"): "put the schema into a file, and name it in `schema_path`",
    ("handover", "contract", "must_pass"): "a contract must pass; use `optional: true` in the step",
    ("handover", "contract", "on_failure"): "use `retry:` or `optional:` in the step",
    ("handover", "contract", "dir"): "leave it out; the command runs in the step's folder",
}


def translate_wave_keys(marked: MarkedData) -> None:
    """Rename Wave's keys in `pipelines:`, and refuse keys without an equivalent."""
    for name, pipeline in to_mapping(to_mapping(marked.data).get("pipelines")).items():
        for key, hint in _PIPELINE_HINTS.items():
            if key in to_mapping(pipeline):
                raise _make_refusal(marked, ("pipelines", name, key), hint)
    for path, step in list_steps(marked.data):
        _translate_step(marked, path, step)
    _translate_item_sources(marked)


def _translate_step(marked: MarkedData, path: KeyPath, step: dict[str, Any]) -> None:
    for source, target in _RENAMED.items():
        _move(marked, path, step, source, target)
    entries = _list_contracts(path, step)
    for _, contract in entries:
        if contract.get("type") in _CONTRACT_TYPES:
            contract["type"] = _CONTRACT_TYPES[contract["type"]]
    entries += [
        ((*path, key), to_mapping(step.get(key))) for key in ("memory", "strategy", "retry")
    ]
    for place, entry in entries:
        keys = tuple(key for key in place[len(path) :] if isinstance(key, str))
        _drop_implied(marked, place, entry, keys)
        _refuse_inner(marked, place, entry, keys)
    if step.get("memory") == {}:
        del step["memory"]
    _translate_exec(marked, path, step)
    _translate_artifacts(marked, path, step)
    for key, hint in _STEP_HINTS.items():
        if key in step:
            raise _make_refusal(marked, (*path, key), hint)


def _list_contracts(path: KeyPath, step: dict[str, Any]) -> list[tuple[KeyPath, dict[str, Any]]]:
    contract = to_mapping(step.get("handover")).get("contract")
    place = (*path, "handover", "contract")
    if isinstance(contract, list):
        checks = enumerate(contract)
        return [((*place, number), check) for number, check in checks if isinstance(check, dict)]
    return [(place, contract)] if isinstance(contract, dict) else []


def _drop_implied(
    marked: MarkedData, path: KeyPath, entry: dict[str, Any], keys: tuple[str, ...]
) -> None:
    for implied, value in _IMPLIED.items():
        if implied[:-1] == keys and entry.get(implied[-1]) == value:
            del entry[implied[-1]]
            marked.lines.pop((*path, implied[-1]), None)


def _refuse_inner(
    marked: MarkedData, path: KeyPath, entry: dict[str, Any], keys: tuple[str, ...]
) -> None:
    for inner, hint in _INNER_HINTS.items():
        if inner[:-1] == keys and inner[-1] in entry:
            raise _make_refusal(marked, (*path, inner[-1]), hint)


def _translate_exec(marked: MarkedData, path: KeyPath, step: dict[str, Any]) -> None:
    """Convert `exec:` to `prompt:` or `run:`."""
    if "exec" not in step:
        return
    place = (*path, "exec")
    entry = to_mapping(step["exec"])
    kind, source = entry.get("type"), entry.get("source")
    if unknown := set(entry) - {"type", "source", "source_path"}:
        raise _make_refusal(
            marked, (*place, min(unknown)), "write the whole task in `prompt:`, or use `run:`"
        )
    if kind == "prompt" and isinstance(source, str):
        _move(marked, path, step, ("exec", "source"), ("prompt",))
    elif kind == "prompt" and "source_path" in entry:
        _move(marked, path, step, ("exec", "source_path"), ("prompt", "file"))
    elif kind == "command" and isinstance(source, str) and "{{" not in source:
        _move(marked, path, step, ("exec", "source"), ("run",))
        step["run"] = ["sh", "-c", source]  # Wave also starts a shell
    else:
        raise ManifestError(
            f"`exec:` of {join_path(path)} cannot be read",
            file=marked.file,
            line=marked.line(place),
            hint="write `prompt: TEXT` or `run: COMMAND`; a command cannot contain `{{ … }}`",
        )
    del step["exec"]


def _translate_artifacts(marked: MarkedData, path: KeyPath, step: dict[str, Any]) -> None:
    """Convert `output_artifacts:` to `outputs:`."""
    if "output_artifacts" not in step:
        return
    place = (*path, "output_artifacts")
    outputs = dict[str, Any]()
    listed = step["output_artifacts"]
    for number, artifact in enumerate(listed if isinstance(listed, list) else [None]):
        entry = to_mapping(artifact)
        name, file = entry.get("name"), entry.get("path")
        if not isinstance(name, str) or file is None or entry.get("source", "file") != "file":
            raise ManifestError(
                f"`output_artifacts:` of {join_path(path)} cannot be read",
                file=marked.file,
                line=marked.line((*place, number)),
                hint="write `outputs: {NAME: FILE}`",
            )
        outputs[name] = file
        marked.lines[(*path, "outputs", name)] = marked.line((*place, number)) or 1
    marked.lines[(*path, "outputs")] = marked.line(place) or 1
    if "outputs" in step:
        raise _make_repeated(marked, place, "outputs")
    step["outputs"] = outputs
    del step["output_artifacts"]


def _translate_item_sources(marked: MarkedData) -> None:
    """Convert Wave's matrix source `STEP/FILE` to `STEP.OUTPUT`."""
    outputs = {
        (*path[:2], step.get("id"), file): output
        for path, step in list_steps(marked.data)
        for output, file in to_mapping(step.get("outputs")).items()
        if isinstance(file, str)
    }
    for path, step in list_steps(marked.data):
        matrix = to_mapping(to_mapping(step.get("strategy")).get("matrix"))
        source, slash, file = str(matrix.get("from", "")).partition("/")
        if slash and (output := outputs.get((*path[:2], source, file))):
            matrix["from"] = f"{source}.{output}"


def _move(
    marked: MarkedData,
    path: KeyPath,
    step: dict[str, Any],
    source: tuple[str, ...],
    target: tuple[str, ...],
) -> None:
    """Move a step's key, if present, with the line numbers of everything below it."""
    holder = _find_holder(step, source)
    if holder is None or source[-1] not in holder:
        return
    value = holder.pop(source[-1])
    inner = step
    for key in target[:-1]:
        created = inner.setdefault(key, {})
        if not isinstance(created, dict):
            raise _make_repeated(marked, (*path, *source), ".".join(target))
        inner = created
    if target[-1] in inner:
        raise _make_repeated(marked, (*path, *source), ".".join(target))
    inner[target[-1]] = value
    before, after = (*path, *source), (*path, *target)
    moved = {place: line for place, line in marked.lines.items() if place[: len(before)] == before}
    for place, line in moved.items():
        del marked.lines[place]
        marked.lines[after + place[len(before) :]] = line


def _find_holder(step: dict[str, Any], keys: tuple[str, ...]) -> dict[str, Any] | None:
    holder: Any = step
    for key in keys[:-1]:
        holder = holder.get(key) if isinstance(holder, dict) else None
    return holder if isinstance(holder, dict) else None


def _make_refusal(marked: MarkedData, path: KeyPath, hint: str) -> ManifestError:
    return ManifestError(
        f"unknown key {join_path(path)!r}", file=marked.file, line=marked.line(path), hint=hint
    )


def _make_repeated(marked: MarkedData, path: KeyPath, key: str) -> ManifestError:
    return ManifestError(
        f"{join_path(path)!r} repeats `{key}`",
        file=marked.file,
        line=marked.line(path),
        hint=f"write only `{key}`",
    )
