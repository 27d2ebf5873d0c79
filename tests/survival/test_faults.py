"""Each fault interferes at its item call, and has no evidence before it has happened."""

from dataclasses import replace

import pytest

from loopback.log import Part
from loopback.script import Fail, Hang, Usage
from survival import faults
from survival.fault import CALL, Asked
from survival.faults import FAULTS
from survival.player import Look, Relay, Say, View, Write
from survival.refusals import REFUSALS

pytestmark = pytest.mark.pure

VIEW = View(frozenset(), "", "", is_relayed=False, calls=0, errors=0)
PROMPT = Part("user", "text", "Write the files.")


def make(name, tmp_path, cli="claude-code"):
    fault = faults.make(name, tmp_path / "signals", REFUSALS[cli])
    fault.prepare()
    return fault


def asked(made, *, number=1, parts=(PROMPT,), **view):
    return Asked(number, made, replace(VIEW, **view), parts)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_that_has_not_happened_has_no_evidence(name, tmp_path):
    fault = make(name, tmp_path)
    assert fault.evidence == ""
    assert fault.refuse(asked(0)) is None
    assert fault.steer(asked(0), Write(1)) == Write(1)
    assert fault.wrap(1, "echo") == "echo"
    assert not fault.is_due()
    assert fault.evidence == ""


@pytest.mark.parametrize("name", ["cli-killed", "tool-killed", "both-killed", "operator-stop"])
def test_a_fault_in_a_tool_call_waits_for_its_call(name, tmp_path):
    """The call is held open until the next one; then it would write its item."""
    fault = make(name, tmp_path)
    line = fault.wrap(CALL, "echo")
    assert line.endswith("done; echo")
    assert not fault.is_due()
    (fault.signals / "began").touch()
    assert fault.is_due()
    assert not (fault.signals / "released").exists()
    fault.wrap(CALL + 1, "echo")
    assert (fault.signals / "released").exists()


@pytest.mark.parametrize("cli", ["claude-code", "codex"])
def test_five_requests_in_a_row_are_overloaded(tmp_path, cli):
    fault = make("overload", tmp_path, cli)
    refused = [fault.refuse(asked(CALL - 1)) for _ in range(7)]
    assert [isinstance(one, Fail) for one in refused] == [True] * 5 + [False] * 2
    assert fault.evidence == "5 requests were refused"


def test_a_login_stays_expired_until_a_person_repairs_it(tmp_path):
    fault = make("login", tmp_path)
    assert not fault.is_idle(None)
    assert fault.refuse(asked(CALL - 1)).status == 401
    began = fault.at
    assert fault.is_idle(None)
    assert fault.refuse(asked(CALL - 1)) is None
    assert not fault.is_idle(None)
    assert fault.ended_at > began


def test_a_person_notices_a_login_that_is_refused_again_and_again(tmp_path):
    fault = make("login", tmp_path)
    refused = [fault.refuse(asked(CALL - 1)) for _ in range(fault.MOST + 1)]
    assert [one is None for one in refused] == [False] * fault.MOST + [True]
    assert fault.ended_at > fault.at


def test_a_usage_limit_holds_until_its_reset(tmp_path):
    fault = make("limit", tmp_path)
    refused = fault.refuse(asked(CALL - 1))
    assert refused.status == 429
    assert int(refused.headers["anthropic-ratelimit-unified-reset"]) % 60 == 0
    assert not fault.can_continue()
    assert 19 < fault.ended_at - fault.at <= 80
    fault.resets = 1.0
    assert fault.can_continue()
    assert fault.refuse(asked(CALL - 1)) is None


def test_a_window_fills_up_and_refuses_what_does_not_fit(tmp_path):
    fault = make("window", tmp_path)
    assert fault.report_usage(asked(1, calls=8), Usage(), 5).cache_read == 800_000
    assert fault.refuse(asked(1, calls=10)) is None
    assert "too long" in fault.refuse(asked(1, calls=11)).message


def test_only_one_request_is_never_answered(tmp_path):
    fault = make("hang", tmp_path)
    assert isinstance(fault.refuse(asked(CALL - 1)), Hang)
    assert fault.is_due()
    assert fault.refuse(asked(CALL - 1)) is None


def test_the_model_reports_a_false_end_once(tmp_path):
    fault = make("false-done", tmp_path)
    assert fault.steer(asked(9), Write(10)) == Write(10)
    relay = fault.steer(asked(10, relay="/x"), Write(11))
    assert relay == Relay("/x", "DONE")
    assert isinstance(fault.steer(asked(10, relay="/x", is_relayed=True), Write(11)), Say)
    assert fault.steer(asked(10), Look()) == Look()
    assert fault.steer(asked(10), Write(11)) == Write(11)


def test_the_model_repeats_its_plan_until_it_is_told(tmp_path):
    fault = make("same-plan", tmp_path)
    for _ in range(3):
        assert isinstance(fault.steer(asked(10), Write(11)), Say)
    told = Part("user", "text", "STALL DETECTED: previous cycle produced same next action.")
    assert fault.steer(asked(10, parts=(PROMPT, told)), Write(11)) == Write(11)


def test_a_night_strikes_six_times(tmp_path):
    fault = make("night", tmp_path)
    assert [number for number in range(1, 21) if fault.wrap(number, "echo") != "echo"] == [3, 9, 18]
    assert fault.refuse(asked(5)).status == 429
    assert fault.evidence.startswith("1 of 6 faults: ")
