"""The model of the goal mode marks the goal as complete, and only then reports the end."""

import json

import pytest

from loopback.log import Part
from loopback.script import Text, ToolCall
from survival import player
from survival.contenders.codex_goal import CodexGoal
from survival.player import Say, Write

pytestmark = pytest.mark.pure

PROMPT = Part("user", "text", "Continue working toward the active thread goal.")
MARKED = (
    Part("assistant", "call", json.dumps({"status": "complete"}), "1"),
    Part("user", "result", "Goal achieved.", "1"),
)
END = Say(player.SENTENCE)


def step(move, *parts):
    return CodexGoal("codex").own_step([PROMPT, *parts], move)


def test_the_goal_is_complete_before_the_end_is_reported():
    assert step(END) == ToolCall("update_goal", {"status": "complete"})
    assert step(END, *MARKED) == Text(player.SENTENCE)


def test_work_does_not_continue_in_a_turn_that_has_completed_the_goal():
    assert step(Write(11), *MARKED) == Text(player.SENTENCE)


def test_other_moves_are_left_alone():
    assert step(Write(1)) is None
    assert step(Say("Next, I will write item 11.")) is None


def test_a_new_goal_can_be_completed_again():
    again = Part("user", "text", "Continue")
    assert step(END, *MARKED, again) == ToolCall("update_goal", {"status": "complete"})


def test_calls_for_the_goal_are_no_work():
    assert CodexGoal("codex").work_parts([PROMPT, *MARKED]) == [PROMPT]
