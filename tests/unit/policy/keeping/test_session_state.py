"""What a session is doing is read from the end of its transcript."""

import pytest

from rekindle.documents.launches.launch_types import (
    AssistantText,
    ToolCallStarted,
    UsageReport,
    WindowUsage,
)
from rekindle.documents.transcripts.turns import Passage, PromptText, ToolResult
from rekindle.policy.keeping.session_state import SessionState, TranscriptLine, read_state

ASKED = PromptText("count the stars")
CALL = ToolCallStarted("Bash", "c1", "sleep 600")
DONE = ToolResult("c1", ok=True)
SAID = AssistantText("done")
USED = UsageReport(WindowUsage(1, None, "unknown"))


def read(*contents, thread=""):
    """Read lines of one passage each. A line may be True or False instead: the turn is over."""
    return read_state(
        TranscriptLine((), content)
        if isinstance(content, bool)
        else TranscriptLine([Passage(what=content, thread=thread)])
        for content in contents
    )


@pytest.mark.parametrize(
    ("contents", "is_working", "call"),
    [
        ((), False, ""),
        ((ASKED,), True, ""),
        ((ASKED, SAID, USED), False, ""),
        ((ASKED, CALL), True, "Bash: sleep 600"),
        ((ASKED, SAID, CALL), True, "Bash: sleep 600"),
        ((ASKED, CALL, SAID), True, "Bash: sleep 600"),
        ((ASKED, CALL, DONE), True, ""),
        ((ASKED, CALL, DONE, SAID), False, ""),
        ((ASKED, CALL, ASKED, SAID), False, ""),
        ((ASKED, SAID, ASKED, AssistantText(" ")), True, ""),
        ((ASKED, SAID, False), True, ""),
        ((ASKED, CALL, True), False, ""),
        ((ASKED, CALL, True, DONE), False, ""),
        ((ASKED, CALL, DONE, True, False), True, ""),
    ],
)
def test_a_turn_is_over_after_an_answer_without_open_calls(contents, is_working, call):
    state = read(*contents)
    assert (state.is_working, state.call) == (is_working, call)


def test_prompts_are_counted_and_the_first_is_kept():
    assert read(ASKED, SAID, PromptText("and the moons"), SAID) == SessionState(
        2, "count the stars"
    )


def test_the_time_of_the_last_prompt_is_kept():
    asked = [Passage(what=ASKED, at="10:00"), Passage(what=ASKED, at="10:05")]
    assert read_state([TranscriptLine(asked)]).asked_at == "10:05"


def test_a_sub_agent_does_not_count():
    assert read(ASKED, CALL, thread="helper") == SessionState()
