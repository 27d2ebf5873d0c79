"""The model's answers in the format of each API, without any agent."""

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest

from loopback import anthropic, chat, gemini, openai
from loopback.log import MAIN
from loopback.model import Dialect, Model
from loopback.script import Cut, Parallel, Text, ToolCall, Usage

USAGE = Usage(input=7, cache_read=8, cache_write=9, output=10)
CALLS = Parallel((ToolCall("a", {"x": 1}), ToolCall("b", {})))
CODEX = {
    "model": "m",
    "instructions": "Be good.",
    "input": [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "d"}]},
        {"type": "message", "role": "user", "content": [{"text": "<environment_context>e"}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "function_call", "call_id": "c", "name": "a", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "Process exited with code 3\n"},
    ],
}
GEMINI = {
    "systemInstruction": {"role": "user", "parts": [{"text": "Be good."}]},
    "tools": [{"functionDeclarations": []}],
    "contents": [
        {"role": "user", "parts": [{"text": "<session_context>s</session_context>"}]},
        {"role": "user", "parts": [{"text": "<hook_context>h</hook_context>\n\nhello"}]},
        {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "a", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"id": "c", "response": {"error": "no"}}}]},
    ],
}
CHAT = {
    "model": "m",
    "tools": [{"type": "function", "function": {"name": "a"}}],
    "messages": [
        {"role": "system", "content": "Be good."},
        {"role": "user", "content": [{"type": "text", "text": "hello"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "function": {"arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "it failed"},
    ],
}
COMPLETIONS = "/v1/chat/completions"
STREAM = "/v1beta/models/m:streamGenerateContent?alt=sse"


@contextmanager
def serving(dialect: Dialect) -> Iterator[Model]:
    with Model(dialect, socket.create_server(("127.0.0.1", 0))) as model:
        yield model


def ask(model: Model, path: str, body: Any, **headers: str) -> tuple[int, str]:
    with closing(http.client.HTTPConnection(model.url.removeprefix("http://"), timeout=30)) as line:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        line.request("POST", path, json.dumps(body), {"authorization": "secret", **sent})
        answer = line.getresponse()
        return answer.status, answer.read().decode()


def told(stream: str) -> list[dict[str, Any]]:
    rows = [line.removeprefix("data: ") for line in stream.splitlines() if line.startswith("data")]
    return [json.loads(row) for row in rows]


@pytest.mark.parametrize(
    ("dialect", "path", "body"),
    [(openai.OpenAI(), "/v1/responses", CODEX), (gemini.Gemini(), STREAM, GEMINI)],
    ids=["openai", "gemini"],
)
def test_what_was_given_is_read(dialect, path, body):
    """The log tells prompts, results and the system's words apart, and never has the key."""
    with serving(dialect) as model:
        ask(model, path, body)
        (request,) = model.log
    assert request.kind == MAIN
    assert request.prompts == ["hello"]
    assert len(request.injected) == 3
    assert [(part.call, part.is_error) for part in request.results] == [("c", True)]
    assert "secret" not in str(request.headers)


def test_responses():
    """Text and calls, as one document and as a stream, with all tokens counted together."""
    with serving(openai.OpenAI()) as model:
        model.play(Text("all done", USAGE), CALLS, openai.too_long())
        document = json.loads(ask(model, "/v1/responses", CODEX)[1])
        assert document["output"][0]["content"][0]["text"] == "all done"
        assert document["usage"]["input_tokens"] == 24
        assert document["usage"]["total_tokens"] == 34
        stream = told(ask(model, "/v1/responses", CODEX | {"stream": True})[1])
        assert [each["sequence_number"] for each in stream] == list(range(len(stream)))
        done = [each["item"] for each in stream if each["type"] == "response.output_item.done"]
        assert [(item["name"], item["arguments"]) for item in done] == [
            ("a", '{"x": 1}'),
            ("b", "{}"),
        ]
        assert len({item["call_id"] for item in done}) == 2
        status, failed = ask(model, "/v1/responses", CODEX | {"stream": True})
        assert status == 200
        assert told(failed)[-1]["response"]["error"]["code"] == "context_length_exceeded"


def test_a_compaction_of_codex_is_a_side_request():
    """It says itself what it asks for, and takes no step of the main conversation."""
    with serving(openai.OpenAI()) as model:
        script = model.play(Text("all done"))
        asked = json.dumps({"request_kind": "compaction"})
        ask(model, "/v1/responses", CODEX, x_codex_turn_metadata=asked)
        ask(model, "/v1/responses", CODEX, x_openai_subagent="review")
        assert [request.kind for request in model.log] == [openai.COMPACTION, openai.HELPER]
        assert script.remaining == 1


def test_a_compaction_of_claude_code_is_a_side_request_despite_a_reminder():
    said = "CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."
    body = {
        "model": "m",
        "thinking": {"type": "adaptive"},
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": said}]},
            {"role": "system", "content": "Keep the user updated."},
        ],
    }
    dialect = anthropic.Anthropic()
    assert dialect.classify("POST", "/v1/messages", {}, body) == anthropic.COMPACTION
    body["messages"].append({"role": "user", "content": "Continue."})
    assert dialect.classify("POST", "/v1/messages", {}, body) == MAIN


def test_contents():
    """Text and calls, as one document and as a stream; the last piece has the tokens."""
    with serving(gemini.Gemini()) as model:
        model.play(Text("all done", USAGE), CALLS, gemini.out_of_quota(30))
        *_, last = pieces = told(ask(model, STREAM, GEMINI)[1])
        said = [each["candidates"][0]["content"]["parts"][0]["text"] for each in pieces]
        assert "".join(said) == "all done"
        assert last["usageMetadata"]["promptTokenCount"] == 24
        assert "usageMetadata" not in pieces[0]
        document = json.loads(ask(model, "/v1beta/models/m:generateContent", GEMINI)[1])
        calls = [each["functionCall"] for each in document["candidates"][0]["content"]["parts"]]
        assert [(call["name"], call["args"]) for call in calls] == [("a", {"x": 1}), ("b", {})]
        status, failed = ask(model, STREAM, GEMINI)
        assert (status, json.loads(failed)["error"]["status"]) == (429, "RESOURCE_EXHAUSTED")


def test_completions():
    """Text and calls, as one document and as a stream whose last piece has the tokens."""
    with serving(chat.Chat()) as model:
        model.play(Text("all done", USAGE), CALLS, chat.RATE_LIMITED)
        document = json.loads(ask(model, COMPLETIONS, CHAT)[1])
        assert document["choices"][0]["message"]["content"] == "all done"
        assert document["usage"]["total_tokens"] == 34
        stream = ask(model, COMPLETIONS, CHAT | {"stream": True})[1]
        *pieces, last = told(stream.removesuffix("data: [DONE]\n\n"))
        calls: dict[int, list[str]] = {}
        for each in pieces:
            for call in each["choices"][0]["delta"].get("tool_calls", ()):
                named = call["function"].get("name", "")
                calls.setdefault(call["index"], []).append(named + call["function"]["arguments"])
        assert {at: "".join(words) for at, words in calls.items()} == {0: 'a{"x": 1}', 1: "b{}"}
        assert pieces[-1]["choices"][0]["finish_reason"] == "tool_calls"
        assert last["usage"]["completion_tokens"] == 10
        assert ask(model, COMPLETIONS, CHAT)[0] == 429
        request = model.log.main[0]
    assert (request.prompts, request.injected) == (["hello"], ["Be good."])
    assert [(part.call, part.text) for part in request.results] == [("c", "it failed")]


def test_side_requests_of_completions():
    """Titles and an agent's own questions take no step of the conversation."""
    asked = {"role": "user", "content": "[SUGGESTION MODE: what could follow?]"}
    with serving(chat.Chat()) as model:
        script = model.play(Text("all done"))
        ask(model, COMPLETIONS, {"messages": []})
        ask(model, COMPLETIONS, CHAT | {"messages": [asked]})
        ask(model, "/v1/models", None)
        assert [request.kind for request in model.log] == [chat.TITLE, chat.HELPER, chat.PROBE]
        assert script.remaining == 1


def test_side_requests_of_gemini():
    """Counting, a verdict in a given form, and a summary take no step of the conversation."""
    schema = {"type": "OBJECT", "properties": {"who": {"enum": ["user"]}}, "required": ["who"]}
    form = {"responseMimeType": "application/json", "responseJsonSchema": schema}
    summary = {"systemInstruction": {"parts": [{"text": "Write a <state_snapshot>."}]}}
    path = "/v1beta/models/m:generateContent"
    with serving(gemini.Gemini()) as model:
        script = model.play(Text("all done"))
        assert "totalTokens" in ask(model, "/v1beta/models/m:countTokens", GEMINI)[1]
        verdict = json.loads(ask(model, path, {"contents": [], "generationConfig": form})[1])
        part = verdict["candidates"][0]["content"]["parts"]
        assert json.loads("".join(each["text"] for each in part)) == {"who": "user"}
        ask(model, path, {"contents": [], **summary})
        ask(model, path, {"contents": []})
        kinds = [gemini.COUNT, gemini.STRUCTURED, gemini.COMPACTION, gemini.HELPER]
        assert [request.kind for request in model.log] == kinds
        assert script.remaining == 1


@pytest.mark.parametrize(
    ("dialect", "path", "body"),
    [
        (openai.OpenAI(), "/v1/responses", CODEX | {"stream": True}),
        (gemini.Gemini(), STREAM, GEMINI),
        (chat.Chat(), COMPLETIONS, CHAT | {"stream": True}),
    ],
    ids=["openai", "gemini", "chat"],
)
def test_an_answer_that_is_cut(dialect, path, body):
    """The connection drops in the middle of a stream."""
    with serving(dialect) as model:
        model.play(Cut(Text("never whole")))
        with pytest.raises(http.client.IncompleteRead):
            ask(model, path, body)
