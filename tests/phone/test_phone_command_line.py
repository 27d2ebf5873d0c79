"""`rekindle phone`: set up, pair, run, look and remove."""

import io
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from phone.phone_world import ME
from phone.telegram_double import TOKEN
from rekindle.cli import main

COMMAND = (sys.executable, "-m", "rekindle", "phone")


@pytest.fixture
def run(capfd, monkeypatch):
    """Run a command in this process, and return its output."""

    def run_one(*words, given="", code=0):
        monkeypatch.setattr(sys, "stdin", io.StringIO(given))
        ended = main.run(["phone", *words])
        printed = "".join(capfd.readouterr())
        assert ended == code, printed
        return printed

    return run_one


@contextmanager
def bridge(ending):
    """Run a bridge, and end it with a signal."""
    with subprocess.Popen([*COMMAND, "run"], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr.readline() == "the bridge is running\n"
            yield
        finally:
            process.send_signal(ending)
    assert process.returncode == (0 if ending == signal.SIGTERM else -ending)


def test_from_setup_to_the_first_answer(run, project, telegram):
    """Three commands and one message pair a phone; the bridge is killed and started again."""
    assert "Next: rekindle phone setup" in run("status")
    assert "run `rekindle phone setup`" in run("run", code=2)
    out = run("setup", "--server", telegram.url, given=f"{TOKEN}\n")
    assert "✓ telegram: @rekindle_bot works" in out
    assert "Next: rekindle phone pair" in out
    paired = run("pair", "--may", "operate")
    assert "Next: start the bridge" in paired
    with bridge(signal.SIGKILL):
        assert "a bridge is already running" in run("run", code=2)
        [line] = [line for line in paired.splitlines() if "/pair" in line]
        telegram.say(ME, line.strip())
        telegram.wait_for(lambda: any("Paired" in text for text in telegram.texts(ME)))
    project.ask()
    assert "Next: rekindle phone run" in run("status")
    with bridge(signal.SIGTERM):
        telegram.wait_for(lambda: any("asks" in text for text in telegram.texts(ME)))
        telegram.press(ME, "Allow once")
        telegram.wait_for(lambda: any("is closed" in text for text in telegram.texts(ME)))
        status = json.loads(run("status", "--json"))
    assert project.answers() == {"trades-1": ("allow", f"telegram:{ME}", "phone")}
    assert status["running"]
    assert status["chats"] == [
        {"service": "telegram", "chat": str(ME), "user": str(ME), "may": "operate"}
    ]
    assert f"telegram chat {ME}, user {ME}: may operate" in run("status")
    run("remove", str(ME))
    run("remove", str(ME), code=7)
    run("remove", "telegram")
    assert "No phone is set up" in run("status")


@pytest.mark.parametrize(
    ("words", "given", "message"),
    [
        (["setup"], "", "there is no token"),
        (["setup"], "two words\n", "this is not a token"),
        (["setup"], "1/2\n", "this is not a token"),
        (["setup", "--server", "http://example.org"], "1:a\n", "cannot be used"),
        (["setup", "--server", "https://["], "1:a\n", "cannot be used"),
        (["setup", "ntfy", "--server", "https://["], "1:a\n", "cannot be used"),
        (["setup", "--server", "https://example.org:x"], "1:a\n", "cannot be used"),
        (["pair"], "", "no service with chats is set up"),
    ],
)
def test_wrong_input_is_explained(run, words, given, message):
    assert message in run(*words, given=given, code=2)


def test_groups_and_persons_can_be_removed(run, desk):
    for user in (ME, 7, 8):
        desk.pair(-100123, user)
    desk.pair(ME)
    run("remove", "-100123/7")
    told = run("status")
    assert f"chat -100123, user {ME}:" in told
    assert "user 7" not in told
    run("remove", "-100123/7", code=7)
    run("remove", "-100123")
    assert "-100123" not in run("status")
    assert f"chat {ME}, user {ME}:" in run("status")


def test_without_a_network_the_user_tries_again(run, telegram):
    telegram.close()
    told = run("setup", "--server", telegram.url, given=f"{TOKEN}\n", code=17)
    assert "check the network, then try again" in told


def test_an_unknown_service_is_explained(run):
    assert "install its plugin" in run("setup", "pager", given="x\n", code=7)


def test_a_wrong_token_is_not_stored(run, telegram):
    told = run("setup", "--server", telegram.url, given="1:wrong\n", code=17)
    assert "HTTP 401" in told
    assert "1:wrong" not in told
    assert "No phone is set up" in run("status")


def test_an_agent_cannot_use_it(project):
    """The mark of a launch in the environment tells an agent's processes."""
    folder = project.path / ".rekindle/agents/trades"
    folder.mkdir(parents=True)
    env = os.environ | {"REKINDLE_LAUNCH": "x", "REKINDLE_FOLDER": str(folder)}
    ended = subprocess.run([*COMMAND, "pair"], env=env, capture_output=True, check=False)
    assert ended.returncode == 14, ended.stderr
