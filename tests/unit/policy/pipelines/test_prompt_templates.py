"""Names between braces in prompts."""

import pytest

from rekindle.policy.pipelines.prompt_templates import (
    Ancestor,
    fill_in,
    find_unknown_name,
    list_names,
)

ANCESTORS = {"plan": Ancestor(("items",)), "build": Ancestor()}


def test_names_are_listed_without_spaces_and_escaped_braces():
    prompt = "{{input}} \\{{ literal }} {{  steps.plan.diff }} { {no} } {{\n}} {{}}"
    assert list_names(prompt) == ["input", "steps.plan.diff", ""]


def test_each_name_is_filled_in_once():
    """A text that contains braces is not searched for names again."""
    texts = {"input": "{{ item }} and \\{{ x }}", "item": "secret"}
    assert fill_in("a {{ input }} b {{item}}", texts.__getitem__) == (
        "a {{ item }} and \\{{ x }} b secret"
    )
    assert fill_in("\\{{ input }}", texts.__getitem__) == "{{ input }}"


@pytest.mark.parametrize(
    ("name", "is_matrix"),
    [
        ("input", False),
        ("item", True),
        ("item.task.title", True),
        ("steps.plan.diff", False),
        ("steps.build.failed", False),
        ("steps.plan.outputs.items", True),
    ],
)
def test_known_names(name, is_matrix):
    assert find_unknown_name(f"x {{{{ {name} }}}}", ANCESTORS, is_matrix=is_matrix) is None


@pytest.mark.parametrize(
    "name",
    [
        "",
        "item",
        "item.",
        "input.x",
        "steps",
        "steps.plan",
        "steps.plan.result",
        "steps.other.diff",
        "steps.plan.diff.x",
        "steps.plan.outputs",
        "steps.plan.outputs.other",
        "steps.plan.outputs.items.x",
        "steps.build.outputs.items",
        "secrets.KEY",
        "input | upper",
    ],
)
def test_unknown_names(name):
    unknown = find_unknown_name(f"{{{{ input }}}} {{{{ {name} }}}}", ANCESTORS, is_matrix=False)
    assert unknown is not None
    assert unknown.name == name
    assert unknown.reason
    assert unknown.hint
