"""The model's server, asked without any agent."""

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from loopback.anthropic import COUNT, OVERLOADED, PROBE, STRUCTURED, SUBAGENT, Anthropic
from loopback.log import MAIN
from loopback.model import Model
from loopback.script import DONE, Cut, Forever, Hang, Parallel, Script, Text, ToolCall, Usage

REMINDER = "<system-reminder>x</system-reminder>"
TURN = {
    "model": "some-model",
    "thinking": {"type": "adaptive"},
    "system": [{"type": "text", "text": "Be good."}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": REMINDER}]},
        {"role": "user", "content": "hello"},
        {"role": "system", "content": "# Environment"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "hi"}]},
    ],
}


@pytest.fixture
def model() -> Iterator[Model]:
    """Served on this process's own loopback."""
    with Model(Anthropic(), socket.create_server(("127.0.0.1", 0))) as served:
        yield served


def ask(
    model: Model, body: Any = None, method: str = "POST", path: str = "/v1/messages", **headers: str
) -> tuple[int, bytes]:
    with closing(http.client.HTTPConnection(model.url.removeprefix("http://"), timeout=30)) as line:
        sent = {"x-api-key": "secret", **{key.replace("_", "-"): headers[key] for key in headers}}
        line.request(method, path, json.dumps(body) if body else None, sent)
        answer = line.getresponse()
        return answer.status, answer.read()


def test_one_document(model):
    """A request that does not ask for a stream gets one document."""
    model.play(Text("all done", Usage(input=7, cache_read=8, cache_write=9, output=10)))
    _, raw = ask(model, TURN)
    message = json.loads(raw)
    assert message["content"] == [{"type": "text", "text": "all done"}]
    assert message["stop_reason"] == "end_turn"
    assert list(message["usage"].values()) == [7, 9, 8, 10]


def test_what_was_given_is_read(model):
    """The log tells prompts, results and the system's words apart, and never has the key."""
    ask(model, TURN)
    (request,) = model.log
    assert request.prompts == ["hello"]
    assert [(part.call, part.text) for part in request.results] == [("a", "hi")]
    assert request.injected == ["Be good.", REMINDER, "# Environment"]
    assert all(word in request.text for word in ("Be good.", "hello", "hi"))
    assert request.body == TURN
    assert "secret" not in request.headers.values()


def test_steps_are_taken_in_order(model):
    """Each request takes one step, the last may stay, and an exhausted script is done."""
    model.play(Text("one"), Forever(OVERLOADED))
    assert [ask(model, TURN)[0] for _ in range(3)] == [200, 529, 529]
    model.play()
    assert json.loads(ask(model, TURN)[1])["content"][0]["text"] == DONE.text
    assert [request.place for request in model.log] == [0, 1, 1, None]


def test_no_step_after_forever():
    """A script that hides steps behind an endless one is refused."""
    with pytest.raises(ValueError, match="never be reached"):
        Script(Forever(DONE), DONE)


def test_side_requests_take_no_step(model):
    """Side requests are answered plainly, or by their own script."""
    script = model.play(Text("main"))
    model.play(Text("sub"), to=SUBAGENT)
    form = {"format": {"schema": {"type": "object", "required": ["ok"], "properties": {"ok": {}}}}}
    assert ask(model, None, "HEAD", "/api/hello")[0] == 200
    assert json.loads(ask(model, TURN, path="/v1/messages/count_tokens")[1])["input_tokens"] > 0
    structured = json.loads(ask(model, {**TURN, "output_config": form})[1])
    assert json.loads(structured["content"][0]["text"]) == {"ok": "done."}
    assert b'"sub"' in ask(model, TURN, x_claude_code_agent_id="1")[1]
    assert script.remaining == 1
    assert b'"main"' in ask(model, TURN)[1]
    kinds = [request.kind for request in model.log]
    assert kinds == [PROBE, COUNT, STRUCTURED, SUBAGENT, MAIN]


def test_a_cut_is_a_broken_answer(model):
    """Half of an answer arrives, as a stream and as a document, and the connection is gone."""
    model.play(Forever(Cut(Text("all done"))))
    for stream in (True, False):
        with pytest.raises(http.client.IncompleteRead) as caught:
            ask(model, {**TURN, "stream": stream})
        assert caught.value.partial
        assert b"message_stop" not in caught.value.partial


def test_a_hang_ends_with_the_server():
    """A request that was never released is dropped when the server closes; no thread is left."""
    threads = threading.active_count()
    with Model(Anthropic(), socket.create_server(("127.0.0.1", 0))) as model:
        model.play(Hang())
        line = http.client.HTTPConnection(model.url.removeprefix("http://"), timeout=30)
        line.request("POST", "/v1/messages", json.dumps(TURN))
        assert isinstance(model.log.wait_for(lambda _: True, timeout=30).step, Hang)
    with closing(line), pytest.raises(http.client.RemoteDisconnected):
        line.getresponse()
    assert threading.active_count() == threads


def test_waiting_in_vain_tells_what_was_seen(model):
    """A request that does not come is missed by name of those that did."""
    ask(model, None, "HEAD", "/api/hello")
    with pytest.raises(TimeoutError, match="HEAD /api/hello"):
        model.log.wait_for(lambda request: request.kind == MAIN, timeout=0)


def test_an_error_of_the_server_is_the_tests():
    """A request that the server itself cannot handle fails the test that sent it."""
    model = Model(Anthropic(), socket.create_server(("127.0.0.1", 0)))
    with pytest.raises(http.client.RemoteDisconnected):
        ask(model, {"messages": [{"role": "user"}]})
    with pytest.raises(ExceptionGroup, match="loopback model"):
        model.close()


def test_parallel_calls_are_blocks_of_one_answer(model):
    """Several calls share an answer, each under an identity of its own."""
    model.play(Parallel((ToolCall("Read", {"a": 1}), ToolCall("Read", {"a": 2}))))
    message = json.loads(ask(model, TURN)[1])
    assert message["stop_reason"] == "tool_use"
    assert [block["input"]["a"] for block in message["content"]] == [1, 2]
    assert len({block["id"] for block in message["content"]}) == 2
