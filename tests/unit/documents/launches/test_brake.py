"""A brake says only what differs between CLIs."""

from rekindle.documents.launches.brake import Brake


def test_a_brake_without_an_answer_delays_the_next_call():
    brake = Brake(event="PostToolUse", signs=("usage",), after="usage", counts=("input",))
    assert (brake.answer, brake.window, brake.told_at, brake.is_kept) == ("", "", "", False)
