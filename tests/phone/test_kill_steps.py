"""The bridge is killed before and after each write, each call and each recorded answer."""

import itertools
import random
import shutil

import pytest

import sampling
from phone.phone_world import ME, AskingProject, Desk
from phone.telegram_double import Telegram
from rekindle.phone import run_commands, service_calls
from rekindle.phone import telegram as telegram_service
from rekindle.stores.folders.phone_files import PhoneFiles
from rekindle.system.files import user_folder

CHOICES = {"trades-1": "allow", "trades-2": "deny", "docs-1": "deny"}
LABELS = {"allow": "Allow once", "deny": "Deny"}


class KilledError(BaseException):
    """Ends the bridge at one point, as a kill does."""


class Killer:
    """Counts the steps of the bridge, and kills it once at one of them."""

    def __init__(self, monkeypatch, at):
        self.count, self.at = 0, at
        for owner, name in (
            (PhoneFiles, "change_state"),
            (service_calls._OPENER, "open"),
            (run_commands, "record_answer"),
        ):
            monkeypatch.setattr(owner, name, self.wrap(getattr(owner, name)))

    def wrap(self, function):
        def call(*given, **named):
            self.step()
            result = function(*given, **named)
            self.step()
            return result

        return call

    def step(self):
        self.count += 1
        if self.count == self.at:
            raise KilledError


def play(folder, at):
    """Answer three questions while the bridge is killed once; return how many steps there were."""
    for name in ("projects", "phone"):
        shutil.rmtree(user_folder.make_user_folder() / name, ignore_errors=True)
    project = AskingProject(folder)
    with Telegram() as telegram, pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(telegram_service, "PHONE_POLL_SECONDS", 0)
        desk = Desk(telegram)
        desk.pair()
        for question in CHOICES:
            project.ask(question.partition("-")[0])
        killer = Killer(monkeypatch, at)
        pressed = set()
        for _ in range(10):
            try:
                desk.send()
                press_new(telegram, pressed)
                if telegram.updates:
                    desk.receive()
            except KilledError:
                desk.restart()
        assert not telegram.updates
    answers = project.answers() | project.answers("docs")
    assert {name: choice for name, (choice, *_) in answers.items()} == CHOICES, at
    log = "".join(path.read_text() for path in folder.glob(".rekindle/agents/*/ops.jsonl"))
    counted = [line for line in log.splitlines() if "question.answered" in line]
    assert len([line for line in counted if '"refused":"' not in line]) == len(CHOICES), at
    assert (killer.count >= at) if at else True
    return killer.count


def press_new(telegram, pressed):
    """Press each copy of a question's message once, as a person does."""
    for number, message in list(telegram.messages.items()):
        for question, choice in CHOICES.items():
            if f"({question})" in message["text"] and number not in pressed:
                pressed.add(number)
                telegram.press(ME, LABELS[choice], message=message)


@pytest.mark.torture
@pytest.mark.timeout(1200)
def test_each_question_is_answered_once_whenever_the_bridge_is_killed(tmp_path):
    steps = play(tmp_path / "whole", 0)
    assert steps > 30
    every = range(1, steps + 1)
    chosen = every if sampling.WHOLE else random.Random(7).sample(every, 6)
    folders = itertools.count()
    for at in chosen:
        play(tmp_path / str(next(folders)), at)
    print(f"killed at {len(chosen)} of {steps} steps")
