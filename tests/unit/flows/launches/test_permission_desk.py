"""The supervisor's side of a waiting call: forged, dead and repeated requests."""

import json
import os
import time
from datetime import timedelta
from types import SimpleNamespace

import msgspec
import pytest

from rekindle.documents.events import CallPermitted
from rekindle.documents.manifest import Permissions, Persona
from rekindle.flows.launches.permission_desk import PermissionDesk, hash_call
from rekindle.policy.operator import answers
from rekindle.policy.settings.runtime_settings import Settings
from rekindle.stores.files import FileStore
from rekindle.system import clock, host
from rekindle.thresholds.hook_limits import GATE_REQUESTS, GATE_SILENCE_SECONDS

LAUNCH = "l1"
PUSH = {"command": "git push"}
HERE = "/w/app"


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
            name="trades",
            persona=persona,
            stays=False,
            scratch="",
            marks="",
            budget=None,
            folder=HERE,
        )
        self.desk = PermissionDesk(agent, ports, LAUNCH)
        self.files = self.store.folder("trades").brakes("", "")

    def wait(self, call=None, *, began=None, data=None, note=None):
        """Write a request, and return its id."""
        self.number += 1
        name = f"{self.number:032x}"
        call = {"arguments": PUSH, "tool": "Bash", "cwd": HERE} if call is None else call
        head = int(time.time() if began is None else began)
        text = f"{head}\n{json.dumps(call, sort_keys=True)}\n{json.dumps(note or {})}".encode()
        text = text if data is None else data
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
    assert office.decision(name) == f"allow {hash_call('Bash', PUSH, HERE)}\n"
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


def test_a_gate_whose_approval_was_used_elsewhere_does_not_wait(office):
    name = office.wait()
    office.desk.check()
    office.answer("trades-1", "allow")
    with office.store.writer("trades") as writer:
        used = CallPermitted(ts=clock.read_clock(), question="trades-1", launch="l0")
        writer.append(used)
    assert not office.desk.check()
    decision = office.decision(name)
    assert decision.startswith("deny ")
    assert "already used" in decision


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
    name = office.wait(data=data)
    assert not office.desk.check()
    assert office.known.questions == {}
    assert office.decision(name).startswith("deny -\nRekindle could not read this call")


@pytest.mark.parametrize("depth", [900, 5_000, 200_000])
def test_a_request_that_is_nested_deeply_does_not_hold_up_the_others(office, depth):
    deep = '{"a":' * depth + "1" + "}" * depth
    call = f'{{"arguments": {deep}, "cwd": "{HERE}", "tool": "Bash"}}'
    bad = office.wait(data=f"{int(time.time())}\n{call}\n{{}}".encode())
    good = office.wait()
    assert office.desk.check()
    assert list(office.desk._waiting) == [good]
    assert office.decision(bad).startswith("deny -\nRekindle could not read this call")


def test_an_approval_counts_only_in_the_same_folder(office):
    """The question names the folder, also in its text if it is not the agent's own."""
    office.wait()
    office.desk.check()
    office.answer("trades-1", "allow")
    office.desk._waiting.clear()
    other = office.wait({"arguments": PUSH, "tool": "Bash", "cwd": "/w/other"})
    office.desk.check()
    assert office.decision(other) == ""
    first, second = office.known.questions.values()
    assert (first.request["folder"], second.request["folder"]) == (HERE, "/w/other")
    assert first.text.endswith(": Bash git push")
    assert second.text.endswith(": Bash in /w/other: git push")


def test_a_description_is_shown_but_replaces_no_argument(office):
    office.wait(note={"description": "Publish", "command": "ls", "x": 1})
    office.desk.check()
    [asked] = office.known.questions.values()
    assert asked.request["arguments"] == {**PUSH, "description": "Publish"}
    assert office.desk.digests == {hash_call("Bash", {**PUSH, "description": "Other words"})}


def test_a_default_at_the_deadline_is_not_called_a_denial(office):
    name = office.wait()
    office.desk.check()
    with office.store.writer("trades") as writer:
        later = clock.read_clock() + timedelta(days=365)
        writer.append(*answers.apply_defaults(writer.projection, later))
    office.desk.check()
    assert "No person answered" in office.decision(name)


def test_a_repeated_call_is_notified_again(office):
    """The person may have ignored the first message because the call no longer waited."""
    first = office.wait()
    office.desk.check()
    office.files.request(LAUNCH, first).unlink()
    assert not office.desk.check()
    office.wait()
    assert office.desk.check()
    assert list(office.known.questions) == ["trades-1"]
    assert len(office.notified) == 2
    assert office.notified[0] == office.notified[1]


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
    names = [
        office.wait({"arguments": {"command": f"git push {number}"}, "tool": "Bash", "cwd": HERE})
        for number in range(GATE_REQUESTS + 5)
    ]
    office.desk.check()
    office.desk.check()
    assert len(office.known.questions) == GATE_REQUESTS
    refused = [words for name in names if (words := office.decision(name))]
    assert len(refused) == 5
    assert all(words.startswith("deny -\nThis launch has already asked") for words in refused)


def test_a_link_is_not_followed(office, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(f'{int(time.time())}\n{{"arguments": {{"command": "x"}}, "tool": "Bash"}}')
    office.files.request(LAUNCH, "a" * 32).symlink_to(secret)
    assert not office.desk.check()
    assert office.known.questions == {}
