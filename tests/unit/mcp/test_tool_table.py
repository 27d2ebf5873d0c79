"""The tools: short, complete, and strict about their arguments."""

import re
from pathlib import Path

import pytest

import rekindle
from rekindle.mcp import run_tools
from rekindle.mcp.tool_table import INSTRUCTIONS, RESOURCES, TOOLS

SKILL = Path(rekindle.__file__).parent / "plugin_files/skills/rekindle/SKILL.md"
READING = {"status", "relay", "loops", "decisions", "questions", "search"}


def test_the_instructions_and_the_skill_name_every_tool():
    """A CLI that defers tools shows a model only the instructions before it searches."""
    for name in TOOLS:
        assert re.search(rf"\b{name}\b", INSTRUCTIONS), name
        assert f"`{name}`" in SKILL.read_text(), name
    front = SKILL.read_text().split("---")[1]
    assert re.fullmatch(r"\nname: rekindle\ndescription: [^\n]{20,400}\n", front)


def test_the_skill_leaves_the_loops_of_a_person_open():
    """`rekindle resolve` does not check who opened the loop, so the skill has to say it."""
    assert "`rekindle resolve ID REASON` if you added the loop" in SKILL.read_text()
    assert "Do not run `rekindle resolve` for such a loop." in SKILL.read_text()


def test_tools_are_short_because_some_clis_send_them_with_every_request():
    """All tools together take fewer than 1,500 tokens."""
    described = [tool.describe() for tool in TOOLS.values()]
    assert all(len(each["description"]) <= 90 for each in described)
    assert len(str(described)) + len(INSTRUCTIONS) < 6_000
    assert {each["name"] for each in described if each["annotations"]["readOnlyHint"]} == READING


def test_every_tool_and_resource_has_a_function():
    """No tool is listed that cannot be called."""
    callable_tools = {*run_tools._READING, *run_tools._PROPOSING, "ask_person"}
    assert callable_tools == set(TOOLS)
    assert {each["uri"].rpartition("/")[2] for each in RESOURCES} <= set(run_tools._READING)


@pytest.mark.parametrize(
    ("tool", "arguments", "fault"),
    [
        ("propose_loop", {"id": "a", "text": "b"}, ""),
        ("propose_loop", [], "not an object"),
        ("propose_loop", None, "not an object"),
        ("propose_loop", {"id": "a"}, "text is missing"),
        ("propose_loop", {"id": "a", "text": 1}, "text is not of type string"),
        ("propose_loop", {"id": "a", "text": None}, "text is not of type string"),
        ("propose_loop", {"id": "a", "text": " "}, "text is empty"),
        ("propose_loop", {"id": "a", "text": "x" * 10_000_000}, "10,000,000 characters"),
        ("propose_loop", {"id": "a", "text": "b", "by": "person"}, "no argument 'by'"),
        ("propose_loop", {"id": "a", "text": "b", "x" * 999: 1}, "no argument"),
        ("status", {"agent": "other"}, "no argument 'agent'"),
        ("search", {"words": "x", "limit": 0}, "not between 1 and 20"),
        ("search", {"words": "x", "limit": True}, "not of type integer"),
        ("search", {"words": "x", "limit": 10**400}, "not between 1 and 20"),
        ("ask_person", {"question": "x", "options": ["a", "b"], "wait_seconds": 0}, ""),
        ("ask_person", {"question": "x", "options": ["a"] * 5}, "5 items"),
        ("ask_person", {"question": "x", "options": ["a" * 61]}, "61 characters"),
        ("ask_person", {"question": "x", "options": [{}]}, "not of type string"),
        ("ask_person", {"question": "x", "wait_seconds": -1}, "not between"),
    ],
)
def test_arguments_that_do_not_fit_are_named(tool, arguments, fault):
    """The message tells the agent what to change, and never repeats a long value."""
    found = TOOLS[tool].find_fault(arguments)
    assert fault in found
    assert bool(found) is bool(fault)
    assert len(found) < 200
