"""The double of Telegram is checked with client libraries that are made for the real service."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import prerequisites
import sampling
from phone.telegram_double import TOKEN

UV = Path(sys.executable).with_name("uv")
LIBRARIES = {"python_telegram_bot": "python-telegram-bot==22.8", "aiogram": "aiogram==3.31.0"}


@pytest.mark.torture
@pytest.mark.skipif(not sampling.WHOLE, reason="it installs packages: `just torture` runs it")
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_library_for_the_real_service_works_with_the_double(library, telegram, tmp_path):
    """Messages, buttons, edits, confirmed updates and errors are what the library expects."""
    if not shutil.which(UV):
        prerequisites.refuse("uv is not installed")
    python = tmp_path / "venv/bin/python"
    subprocess.run([UV, "venv", "-q", "--python", sys.executable, tmp_path / "venv"], check=True)
    install = [UV, "pip", "install", "-q", "--python", python, LIBRARIES[library]]
    subprocess.run(install, check=True)
    telegram.busy[43] = 7

    def has_called(chat):
        return any(int(given.get("chat_id", 0)) == chat for _, given in telegram.calls)

    script = Path(__file__).with_name("clients") / f"with_{library}.py"
    argv = [python, script, telegram.url, TOKEN]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        telegram.wait_for(lambda: telegram.messages or child.poll() is not None)
        telegram.say(42, "/status")
        telegram.press(42, "Deny")
        telegram.wait_for(lambda: has_called(43) or child.poll() is not None)
        polls = len(telegram.offsets)
        telegram.wait_for(lambda: len(telegram.offsets) > polls or child.poll() is not None)
        telegram.get_updates({})  # a second poller ends the first one
        out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    assert json.loads(out) == {
        "name": "rekindle_bot",
        "text": "/status",
        "sender": 42,
        "data": "code.1",
        "same": True,
        "edited": True,
        "left": 0,
        "retry": 7,
        "errors": ["BadRequest", "RetryAfter", "Conflict", "InvalidToken"],
    }
