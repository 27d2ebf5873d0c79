"""A turn can be found by what was said, by what a tool returned and by the files that it names."""

from rekindle.documents.search.search_types import make_turn_entry
from rekindle.documents.transcripts.turns import ToolCall, Turn


def test_a_turn_without_calls_is_its_text():
    entry = make_turn_entry(Turn(number=3, who="person", at="2026-01-31T06:00", text="go on"))
    assert (entry.kind, entry.number, entry.who, entry.at) == (
        "turn",
        3,
        "person",
        "2026-01-31T06:00",
    )
    assert (entry.text, entry.calls) == ("go on", "")


def test_the_output_of_tools_is_text_and_their_arguments_are_calls():
    calls = (
        ToolCall("Edit", "src/api.py", "ok", "1 line changed"),
        ToolCall("Bash", "pytest -q", "failed", "2 failed"),
    )
    entry = make_turn_entry(Turn(number=1, who="agent", text="I fix it", calls=calls))
    assert entry.text == "I fix it\n1 line changed\n2 failed"
    assert entry.calls == "Edit src/api.py\nBash pytest -q"
