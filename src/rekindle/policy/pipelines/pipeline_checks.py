"""Refuse a pipeline that cannot run, and report the line and what to write instead.

`documents` has already checked each key separately. The checks here need several keys: a name must
refer to something that exists, and keys must fit together.
"""

from collections.abc import Sequence

from rekindle.documents.manifest import Manifest
from rekindle.errors import ManifestError
from rekindle.formats.counts import render_count
from rekindle.formats.yaml_lines import KeyPath, MarkedData
from rekindle.policy.pipelines.step_checks import require_valid_step
from rekindle.policy.pipelines.step_context import StepContext, explain_path, suggest_name
from rekindle.policy.pipelines.step_order import find_cycle, list_ancestors
from rekindle.policy.pipelines.worker_names import NAME_ROOM, is_worker_name


def require_valid_pipelines(manifest: Manifest, marked: MarkedData) -> None:
    """Raise ManifestError, with the line number, for the first pipeline that cannot run."""
    for name, pipeline in manifest.pipelines.items():
        _require_pipeline_keys(manifest, marked, name)
        contexts = [
            StepContext(manifest, marked, name, number) for number in range(len(pipeline.steps))
        ]
        _require_distinct_ids(contexts)
        for context in contexts:
            _require_dependencies(context)
            _require_short_name(context)
        dependencies = {step.id: step.depends_on or [] for step in pipeline.steps}
        _refuse_cycle(contexts, find_cycle(dependencies))
        for context in contexts:
            require_valid_step(context, list_ancestors(dependencies, context.step.id))
    _refuse_ambiguous_names(manifest, marked)


def _require_pipeline_keys(manifest: Manifest, marked: MarkedData, name: str) -> None:
    pipeline = manifest.pipelines[name]
    if not pipeline.steps:
        raise _refuse(
            marked,
            ("pipelines", name, "steps"),
            f"pipeline {name} has no steps",
            "add one, such as `- {id: plan, prompt: Write a plan.}`",
        )
    for number, file in enumerate(pipeline.copy or ()):
        if reason := explain_path(file):
            raise _refuse(
                marked,
                ("pipelines", name, "copy", number),
                f"pipeline {name}: {file!r} {reason}",
                "name a file in the project, such as `copy: [.env]`",
            )


def _require_distinct_ids(contexts: Sequence[StepContext]) -> None:
    ids = set[str]()
    for context in contexts:
        if context.step.id in ids:
            raise context.refuse(
                "id",
                message="there is already a step with this id",
                hint="give each step of a pipeline its own id",
            )
        ids.add(context.step.id)


def _require_dependencies(context: StepContext) -> None:
    others = [step.id for step in context.pipeline.steps if step.id != context.step.id]
    named = context.step.depends_on or []
    for number, dependency in enumerate(named):
        if dependency == context.step.id:
            raise context.refuse(
                "depends_on",
                number,
                message="it depends on itself",
                hint="remove its own id from `depends_on:`",
            )
        if dependency not in others:
            raise context.refuse(
                "depends_on",
                number,
                message=f"there is no step {dependency!r} to depend on",
                hint=suggest_name(dependency, others, "remove `depends_on:`"),
            )
        if dependency in named[:number]:
            raise context.refuse(
                "depends_on",
                number,
                message=f"it names {dependency!r} twice in `depends_on:`",
                hint="name each step once",
            )


def _require_short_name(context: StepContext) -> None:
    """Refuse names that cannot become part of an agent's name."""
    length = len(context.name) + len(context.step.id)
    if length > NAME_ROOM:
        raise context.refuse(
            "id",
            message="the name of its agent would be longer than 63 characters",
            hint=f"shorten the id, or the pipeline's name {context.name!r}, by "
            f"{render_count(length - NAME_ROOM, 'character')}",
        )


def _refuse_cycle(contexts: Sequence[StepContext], cycle: list[str]) -> None:
    if not cycle:
        return
    context = next(context for context in contexts if context.step.id in cycle)
    start = cycle.index(context.step.id)
    ordered = [*cycle[start:], *cycle[:start], context.step.id]
    raise context.refuse(
        "depends_on",
        message=f"its dependencies form a cycle: {' → '.join(ordered)}",
        hint="remove one of these dependencies; to repeat work, use `until:` or `retry:`",
    )


def _refuse_ambiguous_names(manifest: Manifest, marked: MarkedData) -> None:
    """Refuse an agent or a pipeline whose name could be that of another pipeline's worker."""
    places: list[KeyPath] = [
        *(("agents", name) for name in manifest.agents),
        *(("pipelines", name) for name in manifest.pipelines),
    ]
    for path in places:
        for pipeline in manifest.pipelines:
            if is_worker_name(str(path[1]), pipeline):
                raise _refuse(
                    marked,
                    path,
                    f"the name {path[1]!r} belongs to workers of the pipeline {pipeline!r}",
                    f"choose a name that does not start with `{pipeline}-` and a number",
                )


def _refuse(marked: MarkedData, path: KeyPath, message: str, hint: str) -> ManifestError:
    return ManifestError(message, file=marked.file, line=marked.line(path), hint=hint)
