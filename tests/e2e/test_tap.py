"""The tap: a press on a phone lets exactly one waiting call of a real CLI run."""

import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from e2e.test_permissions import FREE, PUSH, Gated, swept  # noqa: F401 - a fixture
from loopback.script import Text
from phone.phone_world import ME, Desk
from phone.telegram_double import Telegram
from rekindle.system.files.user_folder import make_user_folder

pytestmark = pytest.mark.timeout(300)

STRANGER = 666


@pytest.fixture(autouse=True)
def _own_phone():
    """Hide the projects and the phones of other tests."""
    for name in ("projects", "phone"):
        shutil.rmtree(make_user_folder() / name, ignore_errors=True)


@contextmanager
def bridge():
    """Run the bridge beside the agent, and kill it at the end."""
    command = [sys.executable, "-I", "-m", "rekindle", "phone", "run"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr.readline() == "the bridge is running\n"
            yield
        finally:
            process.send_signal(signal.SIGKILL)


def wait_for_message(telegram, question):
    """Return the message about a question, once it is on the phone."""
    telegram.wait_for(
        lambda: any(
            question in message["text"] and "reply_markup" in message
            for message in telegram.messages.values()
        )
    )
    return next(one for one in telegram.messages.values() if question in one["text"])


def test_a_press_lets_exactly_that_call_run(swept: Gated):  # noqa: F811 - the fixture
    """A stranger, a second press, an old button and a dead bridge let nothing run."""
    shell = swept.shell
    swept.model.play(shell(PUSH), shell(PUSH), shell(PUSH), shell(FREE), Text("done"))
    with Telegram() as telegram:
        Desk(telegram).pair()
        running = swept.start()
        with bridge():
            swept.wait_for_question()
            first = wait_for_message(telegram, "trades-1")
            assert "git push" in first["text"]
            telegram.press(ME, "Allow once", user=STRANGER, message=first)
            telegram.press(STRANGER, "Allow once", message=first)
            telegram.wait_for(lambda: not telegram.updates)
            assert (swept.runs(), swept.log("question.answered")) == (0, [])
            pressed = time.monotonic()
            telegram.press(ME, "Allow once", message=first, times=2)
            swept.place.wait_for(lambda: swept.runs() == 1)
            print(f"{swept.name}: {time.monotonic() - pressed:.2f} s from press to call")
            swept.wait_for_question(2)
            second = wait_for_message(telegram, "trades-2")
            telegram.press(ME, "Allow once", message=first)
            telegram.press(ME, "Deny", message=second)
            swept.wait_for_question(3)
            third = wait_for_message(telegram, "trades-3")
        telegram.press(ME, "Allow once", message=third)
        swept.rekindle("deny", "trades-3")
        with bridge():
            telegram.wait_for(lambda: not telegram.updates)
        running.wait()
    assert (swept.runs(), swept.runs("free")) == (1, 1)
    given = [
        (one["choice"], one["by"])
        for one in swept.log("question.answered")
        if not one.get("refused")
    ]
    assert given[:2] == [("allow", f"telegram:{ME}"), ("deny", f"telegram:{ME}")]
    assert [one[0] for one in given] == ["allow", "deny", "deny"]
    assert [one["question"] for one in swept.log("call.permitted")] == ["trades-1"]
