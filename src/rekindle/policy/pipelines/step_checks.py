"""Refuse a pipeline step whose keys do not fit together."""

import re
from collections.abc import Collection

from rekindle.documents.manifest_keys import Compaction
from rekindle.documents.manifest_pipelines import Matrix, PipelineStep, PromptFile, StepContract
from rekindle.formats.yaml_lines import KeyPath
from rekindle.policy.pipelines.prompt_templates import Ancestor, find_unknown_name
from rekindle.policy.pipelines.step_context import StepContext, explain_path, suggest_name

_SUMMARIZER = "summarizer"
_PATH_LIKE = re.compile(r"[\w./-]+\.(?:md|txt|markdown|prompt|j2|tmpl)", re.ASCII | re.IGNORECASE)
_AGENT_KEYS = ("persona", "cycles", "until", "convergence")
"""Keys that have no effect on a step that runs a command."""
_CONTRACT_KEYS = {
    "json_schema": ("source", "schema_path"),
    "test_suite": ("command",),
    "non_empty_file": ("source",),
}
"""Keys that each type of contract requires."""


def require_valid_step(context: StepContext, ancestors: Collection[str]) -> None:
    """Raise ManifestError for the first mistake. `ancestors` are the steps that finish earlier."""
    _require_one_task(context)
    _require_keys_in_place(context)
    _require_personas(context)
    _require_outputs(context)
    for number, contract in enumerate(context.step.contracts):
        _require_contract(context, contract, number)
    if context.step.matrix:
        _require_source(context, context.step.matrix, ancestors)
    _require_template_names(context, ancestors)
    _require_harnesses(context)


def _require_one_task(context: StepContext) -> None:
    step = context.step
    if step.prompt is not None and step.run is not None:
        raise context.refuse(
            "run",
            message="it has both `prompt:` and `run:`",
            hint="use `prompt:` for an agent or `run:` for a command, and put the other into a "
            "step of its own",
        )
    if step.prompt is None and step.run is None:
        raise context.refuse(
            message="it has neither `prompt:` nor `run:`",
            hint="add `prompt: TEXT` for an agent, or `run: COMMAND`",
        )
    if step.run == []:
        raise context.refuse("run", message="`run:` is empty", hint="write `run: [just, lint]`")
    if isinstance(step.prompt, PromptFile):
        if reason := explain_path(step.prompt.file):
            raise context.refuse(
                "prompt",
                "file",
                message=f"its prompt file {step.prompt.file!r} {reason}",
                hint="name a file in the project, such as `prompt: {file: prompts/plan.md}`",
            )
    elif step.prompt is not None and not step.prompt.strip():
        raise context.refuse(
            "prompt", message="its prompt is empty", hint="write the task into `prompt:`"
        )
    elif step.prompt is not None and _PATH_LIKE.fullmatch(step.prompt.strip()):
        raise context.refuse(
            "prompt",
            message=f"its prompt is the text {step.prompt!r}, not the file",
            hint=f"write `prompt: {{file: {step.prompt.strip()}}}`; only an agent's `prompt:` is a "
            "path",
        )


def _require_keys_in_place(context: StepContext) -> None:
    """Refuse keys that would have no effect."""
    step = context.step
    if step.run is not None:
        unused = [key for key in _AGENT_KEYS if getattr(step, key) is not None]
        if step.handover and step.handover.compaction is not None:
            unused.append("handover")
        if unused:
            raise context.refuse(
                unused[0],
                message=f"`{unused[0]}:` has no effect on a command",
                hint=f"remove `{unused[0]}:`, or use `prompt:` instead of `run:`",
            )
        if step.budget and (step.budget.usd is not None or step.budget.tokens is not None):
            raise context.refuse(
                "budget",
                message="a command has no cost in dollars or tokens",
                hint="use `budget: {hours: N}`, or remove it",
            )
    if step.strategy and step.matrix is None:
        raise context.refuse(
            "strategy",
            message="`strategy:` has no matrix",
            hint="write `strategy: {matrix: {from: STEP.OUTPUT}}`, or remove it",
        )
    has_one_source = step.matrix is None and len(step.depends_on or ()) <= 1
    if step.merge and has_one_source:
        raise context.refuse(
            "merge",
            message="it has nothing to merge",
            hint="use `merge:` with `strategy: {matrix: …}` or with several steps in `depends_on:`",
        )


def _require_personas(context: StepContext) -> None:
    step = context.step
    _require_persona(context, step.persona, "persona")
    compaction = step.handover.compaction if step.handover else None
    if isinstance(compaction, Compaction) and compaction.persona != _SUMMARIZER:
        _require_persona(context, compaction.persona, "handover", "compaction", "persona")
    if step.merge is None:
        return
    _require_persona(context, step.merge.persona, "merge", "persona")
    if step.merge.persona is not None and step.merge.conflicts != "agent":
        raise context.refuse(
            "merge",
            "persona",
            message="`merge.persona` is only for `conflicts: agent`",
            hint="write `merge: {conflicts: agent, persona: NAME}`, or remove the persona",
        )
    if step.merge.conflicts == "agent":
        name = step.merge.persona or step.persona
        persona = context.find_persona(name)
        if step.run is not None and step.merge.persona is None:
            raise context.refuse(
                "merge",
                message="a command has no persona that could merge",
                hint="write `merge: {conflicts: agent, persona: NAME}`",
            )
        if persona is not None and not persona.writes:
            raise context.refuse(
                "merge",
                message=f"the persona {name!r} may not write files, so it cannot merge",
                hint="name another persona in `merge:`, or allow it `Write` or `Edit`",
            )


def _require_persona(context: StepContext, name: str | None, *keys: str) -> None:
    if context.find_persona(name) is None:
        raise context.refuse(
            *keys,
            message=f"there is no persona named {name!r}",
            hint=suggest_name(str(name), context.manifest.personas, "add it below `personas:`"),
        )


def _require_outputs(context: StepContext) -> None:
    step = context.step
    files = dict[str, str]()
    for name, file in (step.outputs or {}).items():
        if reason := explain_path(file):
            raise context.refuse(
                "outputs",
                name,
                message=f"its output {file!r} {reason}",
                hint=f"name a file in the step's folder, such as `{name}: out/{name}.json`",
            )
        if file in files:
            raise context.refuse(
                "outputs",
                name,
                message=f"its outputs {files[file]!r} and {name!r} are the same file",
                hint="give each output its own file",
            )
        files[file] = name
    persona = context.find_persona(step.persona)
    if step.outputs and step.run is None and persona is not None and not persona.writes:
        raise context.refuse(
            "outputs",
            message=f"its persona {step.persona!r} may not write files",
            hint="allow it `Write` or `Edit` in `permissions: allowed_tools:`, or remove the "
            "outputs",
        )


def _require_contract(context: StepContext, contract: StepContract, number: int) -> None:
    handover = context.step.handover
    is_list = handover is not None and isinstance(handover.contract, list)
    place: KeyPath = ("handover", "contract", number) if is_list else ("handover", "contract")
    expected = _CONTRACT_KEYS[contract.type]
    for key in ("source", "schema_path", "command"):
        is_set = getattr(contract, key) not in (None, [])
        if is_set != (key in expected):
            keys = " and ".join(f"`{name}`" for name in expected)
            raise context.refuse(
                *place,
                key,
                message=f"the contract {contract.type} "
                + (f"has no `{key}`" if key in expected else f"does not use `{key}`"),
                hint=f"write {keys} for {contract.type}",
            )
    for key in ("source", "schema_path"):
        path = getattr(contract, key)
        if path is not None and (reason := explain_path(path)):
            where = "the step's folder" if key == "source" else "the project"
            raise context.refuse(
                *place,
                key,
                message=f"the contract's `{key}: {path}` {reason}",
                hint=f"name a file in {where}",
            )


def _require_source(context: StepContext, matrix: Matrix, ancestors: Collection[str]) -> None:
    """Require the items to come from an earlier step's output."""
    keys = ("strategy", "matrix", "from")
    source, dot, output = matrix.source.partition(".")
    steps = {step.id: step for step in context.pipeline.steps}
    if not dot or not source or not output:
        raise context.refuse(
            *keys,
            message=f"{matrix.source!r} does not name an output of a step",
            hint=_suggest_source(steps.get(source), ancestors, steps),
        )
    if source not in ancestors:
        exists = "is not a step before this one" if source in steps else "is not a step"
        raise context.refuse(
            *keys,
            message=f"{source!r} in `from: {matrix.source}` {exists}",
            hint=f"add {source} to `depends_on:`"
            if source in steps and source != context.step.id
            else suggest_name(source, ancestors, "add a step that writes the items"),
        )
    if steps[source].matrix:
        raise context.refuse(
            *keys,
            message=f"each worker of {source} writes its own {output!r}",
            hint=f"add a step after {source} that writes one list, and use its output",
        )
    outputs = steps[source].outputs or {}
    if output not in outputs:
        raise context.refuse(
            *keys,
            message=f"step {source} has no output {output!r}",
            hint=suggest_name(output, outputs, f"add `outputs: {{{output}: FILE}}` to {source}"),
        )


def _suggest_source(
    named: PipelineStep | None, ancestors: Collection[str], steps: dict[str, PipelineStep]
) -> str:
    """Return a hint that names an output that the step may use."""
    candidates = [named] if named else [step for step in steps.values() if step.id in ancestors]
    for step in candidates:
        for output in step.outputs or {}:
            return f"write `from: {step.id}.{output}`"
    source = named.id if named else "plan"
    return f"write `from: {source}.items`, and add `outputs: {{items: items.json}}` to {source}"


def _require_template_names(context: StepContext, ancestors: Collection[str]) -> None:
    step = context.step
    if not isinstance(step.prompt, str):
        return
    named = {
        other.id: Ancestor(tuple(other.outputs or ()))
        for other in context.pipeline.steps
        if other.id in ancestors
    }
    unknown = find_unknown_name(step.prompt, named, is_matrix=step.matrix is not None)
    if unknown:
        raise context.refuse(
            "prompt",
            message=f"its prompt uses `{{{{ {unknown.name} }}}}`, but {unknown.reason}",
            hint=unknown.hint,
        )


def _require_harnesses(context: StepContext) -> None:
    """Require a known CLI for each worker: the persona's, or the one that all agents use."""
    step = context.step
    workers = [(step.persona, ("persona",))] if step.run is None else []
    if step.merge and step.merge.conflicts == "agent":
        workers.append((step.merge.persona or step.persona, ("merge",)))
    for name, keys in workers:
        if context.find_harness(name) is None:
            used = sorted({agent.harness for agent in context.manifest.agents.values()})
            reason = f"the agents use {', '.join(used)}" if used else "there are no agents"
            raise context.refuse(
                *keys,
                message=f"its agent CLI is not known, because {reason}",
                hint=f"add `adapter: {(used or ['claude-code'])[0]}` to the persona "
                f"{name or 'default'!r}",
            )
