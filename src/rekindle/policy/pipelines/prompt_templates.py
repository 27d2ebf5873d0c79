r"""Find and replace the names between braces in a pipeline step's prompt.

| name | text in the prompt |
|---|---|
| `{{ input }}` | the text that the run was started with, or nothing |
| `{{ item }}` | the worker's item: its text, or JSON if it is not a text |
| `{{ item.FIELD }}` | a field of the item, in the same form |
| `{{ steps.ID.outputs.NAME }}` | path of the file, or of a folder with one file per worker |
| `{{ steps.ID.diff }}` | path of a file with the step's changes, as a patch |
| `{{ steps.ID.failed }}` | the keys of its failed workers, separated by commas, or `none` |

Outputs and patches are passed as paths, because their text could fill the context window. The text
is `none` if the step did not write one. Names in a step's text are not replaced again. `\{{` stands
for two braces.
"""

import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches

import msgspec

INPUT, ITEM, STEPS = "input", "item", "steps"
_TEMPLATE = re.compile(r"\\\{\{|\{\{([^{}\n]*)\}\}")
"""Escaped braces, or a name between braces."""
_OF_STEPS = ("diff", "failed", "outputs")
_STEP_PARTS = {"diff": 3, "failed": 3, "outputs": 4}
"""Number of parts in a name that starts with `steps`, by its third part."""


class Ancestor(msgspec.Struct, frozen=True):
    """A step whose results a prompt may refer to."""

    outputs: tuple[str, ...] = ()


class UnknownName(msgspec.Struct, frozen=True):
    """A name in a prompt that has no meaning there."""

    name: str
    reason: str
    hint: str


def list_names(prompt: str) -> list[str]:
    """Return the names between braces, in order and without surrounding spaces."""
    matches = _TEMPLATE.finditer(prompt)
    return [match[1].strip() for match in matches if match[1] is not None]


def fill_in(prompt: str, find_text: Callable[[str], str]) -> str:
    """Return the prompt with each name replaced by its text."""
    return _TEMPLATE.sub(
        lambda match: "{{" if match[1] is None else find_text(match[1].strip()), prompt
    )


def find_unknown_name(
    prompt: str, ancestors: Mapping[str, Ancestor], *, is_matrix: bool
) -> UnknownName | None:
    """Return the first name in a prompt that has no meaning there, or None."""
    for name in list_names(prompt):
        if reason := _explain_unknown(name, ancestors, is_matrix=is_matrix):
            return UnknownName(name, *reason)
    return None


def _explain_unknown(
    name: str, ancestors: Mapping[str, Ancestor], *, is_matrix: bool
) -> tuple[str, str] | None:
    """Explain why a name has no meaning and what to write instead, or return None if it has one."""
    first, *rest = name.split(".")
    if first == INPUT and not rest:
        return None
    if first == ITEM and all(rest):
        hint = "add `strategy: {matrix: {from: STEP.OUTPUT}}`, or remove the name"
        return None if is_matrix else ("the step has no matrix", hint)
    if first == STEPS and len(rest) > 1 and rest[1] in _OF_STEPS:
        return _explain_unknown_step(rest, ancestors)
    known = [INPUT, ITEM, *(f"{STEPS}.{step}.diff" for step in ancestors)]
    similar = get_close_matches(name, known, n=1)
    hint = (
        f"did you mean `{{{{ {similar[0]} }}}}`?"
        if similar
        else (
            "use `{{ input }}`, `{{ item }}` or `{{ steps.ID.outputs.NAME }}`; "
            "for two braces, write `\\{{`"
        )
    )
    return "it is not known", hint


def _explain_unknown_step(
    rest: list[str], ancestors: Mapping[str, Ancestor]
) -> tuple[str, str] | None:
    step, part, *names = rest
    ancestor = ancestors.get(step)
    if ancestor is None:
        listed = ", ".join(ancestors) or "none; add it to `depends_on:`"
        return f"{step!r} is not a step before this one", f"the steps before it: {listed}"
    if len(rest) + 1 != _STEP_PARTS[part]:
        hint = f"write `{{{{ steps.{step}.outputs.NAME }}}}` or `{{{{ steps.{step}.diff }}}}`"
        return "it is not complete or too long", hint
    if names and names[0] not in ancestor.outputs:
        listed = ", ".join(ancestor.outputs) or "none; add `outputs: {NAME: FILE}` to it"
        return f"step {step} has no output {names[0]!r}", f"its outputs: {listed}"
    return None
