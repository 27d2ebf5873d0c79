"""A tool call is described by its kind, in one or several messages."""

import pytest

from rekindle.harnesses.acp.acp_calls import AcpCall


def make_call(*updates):
    call = AcpCall("c1")
    for update in updates:
        call.add(update)
    return call


@pytest.mark.parametrize(
    ("updates", "tool", "arguments"),
    [
        ([{"kind": "execute", "rawInput": {"command": "ls -l"}}], "Bash", {"command": "ls -l"}),
        (
            [{"kind": "execute", "rawInput": {"command": ["bash", "-lc", "ls -l"]}}],
            "Bash",
            {"command": "ls -l"},
        ),
        (
            [{"kind": "execute", "rawInput": {"cmd": ["ls", "-l"]}}],
            "Bash",
            {"command": "ls -l"},
        ),
        ([{"kind": "execute", "title": "`ls -l`"}], "Bash", {"command": "ls -l"}),
        (
            [{"kind": "edit", "locations": [{"path": "a.py"}], "rawInput": {"text": "x"}}],
            "Edit",
            {"file_path": "a.py", "text": "x"},
        ),
        ([{"kind": "move", "rawInput": {"path": "a"}}], "Edit", {"file_path": "a", "path": "a"}),
        ([{"kind": "other", "title": "todo list"}], "todo", {"description": "todo list"}),
        ([{}], "tool", {"description": ""}),
        (
            [{"kind": "execute", "rawInput": {"command": "ls"}}, {"title": "Terminal"}],
            "Bash",
            {"command": "ls"},
        ),
        ([{"kind": 3, "title": None, "rawInput": [], "locations": {}, "content": 1}], "tool", None),
    ],
)
def test_a_call_has_the_names_that_personas_use(updates, tool, arguments):
    call = make_call(*updates)
    assert call.tool == tool
    assert arguments is None or call.arguments == arguments


def test_the_files_of_a_call_are_in_its_input_its_locations_and_its_changes():
    diff = {"type": "diff", "path": "c", "newText": "x"}
    update = {"rawInput": {"filePath": "a"}, "locations": [{"path": "b"}, 3], "content": [diff]}
    assert make_call(update).paths.files == ("a", "b", "c")


def test_a_call_with_a_command_runs_it_whatever_its_kind():
    for kind in ("read", "search", "edit", "think"):
        call = make_call({"kind": kind, "rawInput": {"command": "rm -rf x"}})
        assert (call.tool, call.arguments) == ("Bash", {"command": "rm -rf x"})


def test_only_the_first_and_the_last_text_of_a_call_are_kept():
    """A tool that is running can send its whole output with each update."""
    call = AcpCall("c1")
    for number in range(1000):
        text = {"type": "content", "content": {"type": "text", "text": f"{number} git push"}}
        place = [{"path": "a"}]
        call.add({"status": "in_progress", "content": [text], "locations": place})
    assert call.texts == ["", "", "0 git push", "999 git push", {}]
    assert call.paths.files == ("a",)


def test_the_result_of_a_call_is_not_a_part_of_its_description():
    """A forbidden command in a tool's output does not make the call forbidden."""
    text = {"type": "content", "content": {"type": "text", "text": "git push"}}
    before = make_call({"kind": "execute", "content": [text]})
    after = make_call({"kind": "execute", "status": "completed", "content": [text]})
    assert "git push" in before.texts
    assert "git push" not in after.texts


def test_long_texts_are_shortened_where_the_call_is_printed():
    call = make_call({"kind": "edit", "rawInput": {"text": "x" * 9_000, "list": ["y" * 9_000]}})
    assert len(call.render()["arguments"]["text"]) == 4_000
    assert call.render()["arguments"]["list"] == "…"
    assert len(call.arguments["text"]) == 9_000
