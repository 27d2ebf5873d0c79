"""The server: every request gets one answer, and no call blocks another."""

import io
import json
import threading

import pytest

from rekindle.mcp import messages
from rekindle.mcp.server import Server, read_messages
from rekindle.thresholds.proposal_limits import CALLS_AT_ONCE, MESSAGE_BYTES

SECONDS = 120


class Client:
    """A client with a tool that answers at once, or waits until it may."""

    def __init__(self):
        self.lines, self.ran, self.fails = [], [], False
        self.arrived, self.may_end = threading.Condition(), threading.Event()
        self.server = Server(self._receive, self._run)

    def _receive(self, line):
        with self.arrived:
            self.lines.append(json.loads(line))
            self.arrived.notify_all()

    def _run(self, tool, arguments, cancelled):
        self.ran.append(tool)
        if tool == "relay":
            raise KeyError("secret")
        if self.fails:
            return messages.make_text_result("no agent here", is_error=True)
        if tool == "ask_person":
            while not self.may_end.is_set() and not cancelled.wait(0.01):
                pass
        return messages.make_text_result(tool)

    def send(self, identity, method, **params):
        asked = {"jsonrpc": "2.0", "method": method, "params": params}
        self.server.take(
            json.dumps(asked | ({} if identity is None else {"id": identity})).encode()
        )

    def call(self, identity, tool, **arguments):
        self.send(identity, "tools/call", name=tool, arguments=arguments)

    def wait_for(self, *identities):
        with self.arrived:
            assert self.arrived.wait_for(
                lambda: {line["id"] for line in self.lines} >= {*identities}, SECONDS
            )
            return [line for line in self.lines if line["id"] in identities]


@pytest.fixture
def client():
    made = Client()
    yield made
    made.may_end.set()
    made.server.close()


def test_the_other_tools_answer_while_a_question_waits(client):
    """A call that waits for a person does not block the next ones."""
    client.call(1, "ask_person", question="x")
    client.call(2, "status")
    client.send(3, "ping")
    client.wait_for(2, 3)
    assert 1 not in {line["id"] for line in client.lines}
    client.may_end.set()
    [answer] = client.wait_for(1)
    assert answer["result"]["content"] == [{"type": "text", "text": "ask_person"}]


def test_many_calls_at_once_are_all_answered(client):
    """Calls above the limit are refused, none is lost or answered twice."""
    for number in range(CALLS_AT_ONCE + 10):
        client.call(number, "ask_person", question="x")
    refused = client.wait_for(*range(CALLS_AT_ONCE, CALLS_AT_ONCE + 10))
    assert all(line["error"]["code"] == messages.INVALID_REQUEST for line in refused)
    client.may_end.set()
    client.wait_for(*range(CALLS_AT_ONCE))
    assert len(client.lines) == CALLS_AT_ONCE + 10


def test_a_cancelled_call_ends_without_an_answer(client):
    """The protocol wants none, and a later call with the same id is answered."""
    client.call("a", "ask_person", question="x")
    for request in ("b", None, [], {}):
        client.send(None, "notifications/cancelled", requestId=request)
    client.send(None, "notifications/cancelled", requestId="a")
    [waiting] = client.server._threads
    waiting.join(SECONDS)
    assert client.lines == []
    client.call("a", "status")
    client.wait_for("a")


def test_closing_ends_waiting_calls_and_answers_them(client):
    """The CLI may still read."""
    client.call(1, "ask_person", question="x")
    client.server.close()
    assert [line["id"] for line in client.lines] == [1]


def test_a_bug_is_an_answer_without_details(client, capsys):
    """The CLI must not wait for ever, and no secret is printed."""
    client.call(1, "relay")
    [line] = client.wait_for(1)
    assert line["result"]["isError"]
    assert "secret" not in json.dumps(line) + capsys.readouterr().err


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"id": 1, "method": "nothing/here"}, messages.METHOD_NOT_FOUND),
        ({"id": 1, "method": "server/discover"}, messages.METHOD_NOT_FOUND),
        ({"id": 1, "method": 5}, messages.INVALID_REQUEST),
        ({"id": 1}, messages.INVALID_REQUEST),
        ({"id": None, "method": "ping"}, messages.INVALID_REQUEST),
        ({"id": 1, "method": "tools/call", "params": []}, messages.INVALID_PARAMS),
        ({"id": 1, "method": "tools/call", "params": {}}, messages.INVALID_PARAMS),
        ({"id": 1, "method": "tools/call", "params": {"name": ["x"]}}, messages.INVALID_PARAMS),
        ({"id": 1, "method": "tools/call", "params": {"name": "rm"}}, messages.INVALID_PARAMS),
        ({"id": 1, "method": "resources/read", "params": {}}, messages.RESOURCE_NOT_FOUND),
        (
            {"id": 1, "method": "resources/read", "params": {"uri": "file:///etc/passwd"}},
            messages.RESOURCE_NOT_FOUND,
        ),
        (
            {"id": 1, "method": "resources/read", "params": {"uri": "rekindle://propose_loop"}},
            messages.RESOURCE_NOT_FOUND,
        ),
    ],
)
def test_a_wrong_request_gets_an_error_and_runs_nothing(client, message, code):
    """Every request with an id is answered."""
    client.server.take(json.dumps(message).encode())
    assert [line["error"]["code"] for line in client.lines] == [code]
    assert client.ran == []


@pytest.mark.parametrize(
    "message", [{"method": "notifications/initialized"}, {"id": 3, "result": {}}, {"method": "x"}]
)
def test_notifications_and_responses_are_not_answered(client, message):
    """The server never sends a request."""
    client.server.take(json.dumps(message).encode())
    assert client.lines == []


def test_a_resource_is_the_text_of_its_tool(client):
    """Resources need no own code."""
    client.send(1, "resources/read", uri="rekindle://status")
    [line] = client.wait_for(1)
    assert line["result"] == {"contents": [{"uri": "rekindle://status", "text": "status"}]}


@pytest.mark.parametrize(
    ("name", "reason"), [("status", "no agent here"), ("relay", "relay: a bug in Rekindle")]
)
def test_a_resource_that_cannot_be_read_is_an_error(client, name, reason):
    """The failure must not look like the resource's text."""
    client.fails = True
    client.send(1, "resources/read", uri=f"rekindle://{name}")
    [line] = client.wait_for(1)
    assert line["error"] == {"code": messages.INTERNAL_ERROR, "message": reason}


def test_an_id_in_use_is_named_as_the_reason(client):
    """Waiting for other calls would not help."""
    client.call(1, "ask_person", question="x")
    client.call(1, "status")
    [line] = client.wait_for(1)
    assert line["error"]["message"] == "a call with this id is running; use another id"
    assert "status" not in client.ran


def test_a_message_of_ten_megabytes_is_refused_with_its_id(client):
    """The next message is answered."""
    client.call(1, "propose_loop", id="a", text="x" * 10_000_000)
    client.call(2, "status")
    client.wait_for(1, 2)
    assert "10,000,000 characters" in client.lines[0]["result"]["content"][0]["text"]
    assert client.ran == ["status"]


def test_a_message_without_end_is_skipped():
    """The lines after it are read."""
    stream = io.BytesIO(b"x" * (2 * MESSAGE_BYTES + 5) + b"\n\n{}\n" + b"last")
    assert list(read_messages(stream)) == [b"", b"{}\n", b"last"]
