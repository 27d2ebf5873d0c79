"""The supervisor's side of a waiting call: forged, dead and repeated requests."""

import json
import os
import time
from types import SimpleNamespace

import msgspec
import pytest

from rekindle.documents.manifest import Permissions, Persona
from rekindle.flows.launches.permission_desk import PermissionDesk, hash_call
from rekindle.policy.operator import answers
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from rekindle.system import clock, host
from rekindle.thresholds.hook_limits import GATE_REQUESTS, GATE_SILENCE_SECONDS

LAUNCH = "l1"
PUSH = {"command": "git push"}


class Office:
    """A desk, and gates that write their requests by hand."""

    def __init__(self, folder):
        self.store = FileStore(
            folder, host=host.identify_host(), settings=Settings(), clock=clock.read_clock
        )
        self.store.create("trades")
        self.notified, self.number = [], 0
        ports = SimpleNamespace(
            store=self.store,
            settings=Settings(),
            clock=clock.read_clock,
            tell=self.notified.append,
            notify=lambda _, words: self.notified.append(words),
        )
        persona = Persona(permissions=Permissions(ask=["Bash(git push*)"]))
        agent = SimpleNamespace(
            name="trades", persona=persona, stays=False, scratch="", marks="", budget=None
        )
        self.desk = PermissionDesk(agent, ports, LAUNCH)
        self.files = self.store.folder("trades").brakes("", "")

    def wait(self, call=None, *, began=None, data=None):
        """Write a request, and return its id."""
        self.number += 1
        name = f"{self.number:032x}"
        call = {"arguments": PUSH, "tool": "Bash"} if call is None else call
        head = int(time.time() if began is None else began)
        text = f"{head}\n{json.dumps(call, sort_keys=True)}".encode() if data is None else data
        self.files.request(LAUNCH, name).write_bytes(text)
        return name

    def answer(self, question, words):
        with self.store.writer("trades") as writer:
            known = writer.projection
            asked = known.questions[question]
            writer.append(answers.make_answer(known, asked, words, clock.read_clock()))

    def decision(self, name):
        path = self.files.answer(LAUNCH, name)
        return path.read_text() if path.exists() else ""

    @property
    def known(self):
        return self.store.read("trades").projection


@pytest.fixture
def office(tmp_path):
    return Office(tmp_path)


def test_an_approval_is_passed_on_once_with_the_hash_of_the_call(office):
    name = office.wait()
    assert office.desk.check()
    office.answer("trades-1", "allow")
    assert not office.desk.check()
    assert office.decision(name) == f"allow {hash_call('Bash', PUSH)}\n"
    assert list(office.known.permitted) == ["trades-1"]
    again = office.wait()
    assert office.desk.check()
    assert (office.decision(again), list(office.known.questions)) == ("", ["trades-1", "trades-2"])


def test_two_equal_calls_need_two_approvals(office):
    first, second = office.wait(), office.wait()
    office.desk.check()
    assert list(office.known.questions) == ["trades-1", "trades-2"]
    office.answer("trades-2", "allow")
    office.desk.check()
    decided = [name for name in (first, second) if office.decision(name)]
    assert len(decided) == 1
    assert list(office.known.permitted) == ["trades-2"]


@pytest.mark.parametrize("how", ["gone", "silent", "late"])
def test_an_approval_for_a_dead_gate_is_kept_for_the_same_call(office, how):
    name = office.wait()
    assert office.desk.check()
    path = office.files.request(LAUNCH, name)
    if how == "gone":
        path.unlink()
    elif how == "silent":
        old = time.time() - GATE_SILENCE_SECONDS - 1
        os.utime(path, (old, old))
    else:
        [waiter] = office.desk._waiting.values()
        past = msgspec.structs.replace(waiter, until=clock.read_clock())
        office.desk._waiting[name] = past
    office.answer("trades-1", "allow")
    assert not office.desk.check()
    assert (office.decision(name), office.known.permitted) == ("", {})
    again = office.wait()
    office.desk.check()
    assert office.decision(again).startswith("allow ")
    assert list(office.known.permitted) == ["trades-1"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"x\n{}",
        b"1",
        b'1\n{"tool": 1, "arguments": {}}',
        b"99999999999999999999\n[]",
        b"-1\n{}",
        b"1\n{",
    ],
)
def test_a_forged_request_that_is_not_a_call_asks_nothing(office, data):
    office.wait(data=data)
    assert not office.desk.check()
    assert office.known.questions == {}


def test_a_request_cannot_extend_its_own_wait(office):
    """Its own time counts only if it is earlier."""
    name = office.wait(began=time.time() + 86_400)
    assert office.desk.check()
    seconds = Settings().runtime.questions.gate_seconds
    assert office.desk._waiting[name].until.timestamp() < time.time() + seconds
    office.wait(began=time.time() - 86_400)
    office.desk.check()
    assert len(office.known.questions) == 1


def test_an_agent_cannot_ask_any_number_of_questions(office):
    for number in range(GATE_REQUESTS + 5):
        office.wait({"arguments": {"command": f"git push {number}"}, "tool": "Bash"})
    office.desk.check()
    assert len(office.known.questions) == GATE_REQUESTS


def test_a_link_is_not_followed(office, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(f'{int(time.time())}\n{{"arguments": {{"command": "x"}}, "tool": "Bash"}}')
    office.files.request(LAUNCH, "a" * 32).symlink_to(secret)
    assert not office.desk.check()
    assert office.known.questions == {}
