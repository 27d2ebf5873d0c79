"""OpenAI's chat completions, the API that most agents of the Agent Client Protocol can use."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from loopback.log import MAIN, Part, Request
from loopback.script import DONE, Answer, Fail, Parallel, Step, Text, ToolCall, Usage
from loopback.wire import Reply

UNAUTHORIZED: Final = Fail(401, "invalid_api_key", "Incorrect API key provided")
RATE_LIMITED: Final = Fail(429, "rate_limit_exceeded", "Rate limit reached for this model")
BROKEN: Final = Fail(500, "server_error", "The server had an error")
OVERLOADED: Final = Fail(503, "server_is_overloaded", "Our servers are currently overloaded")
TOO_LONG: Final = Fail(
    400,
    "context_length_exceeded",
    "This model's maximum context length is 128000 tokens. However, your messages resulted in"
    " 130000 tokens.",
)

PROBE: Final = "probe"
"""Anything but a completion: `GET /v1/models`."""
TITLE: Final = "title"
"""A completion without tools: a title of the session, or a summary."""
HELPER: Final = "helper"
"""Another conversation than the main one: a classifier, a memory, a suggestion."""

_HELPERS: Final = ("## Pending tool call to classify", "Managed memory has", "[SUGGESTION MODE")
"""How the last prompts of Qwen Code's own requests begin."""
_STEPS: Final = 3
"""The pieces in which a text or a call arrives."""


class Chat:
    """The dialect of `POST /v1/chat/completions`."""

    def classify(self, method: str, path: str, headers: Mapping[str, str], body: Any) -> str:
        """Tell the main conversation, which has tools, from the agent's side requests."""
        if method != "POST" or not path.partition("?")[0].endswith("/chat/completions"):
            return PROBE
        last = next(
            (part for part in reversed(list(self.parts(body))) if part.role == "user"), None
        )
        if last and last.text.startswith(_HELPERS):
            return HELPER
        return MAIN if body.get("tools") else TITLE

    def parts(self, body: Any) -> Iterator[Part]:
        if isinstance(body, dict):
            for message in body.get("messages", []):
                yield from _parts(message)

    def unscripted(self, kind: str, body: Any) -> Step | None:
        return {PROBE: None, TITLE: Text("A title")}.get(kind, DONE)

    def plain(self, request: Request) -> Reply:
        if request.path.partition("?")[0].endswith("/models"):
            return Reply.json({"object": "list", "data": []})
        return self.fail(request, Fail(404, "not_found", f"no {request.path}"))

    def fail(self, request: Request, fail: Fail) -> Reply:
        error = {"message": fail.message, "type": fail.type, "code": fail.type, "param": None}
        headers = {"x-request-id": f"req_{request.number:06}", **fail.headers}
        return Reply.json({"error": error | dict(fail.more)}, fail.status, headers)

    def say(self, request: Request, answer: Answer) -> Reply:
        message = _message(request, answer)
        reason = "tool_calls" if "tool_calls" in message else "stop"
        whole = {
            "id": f"chatcmpl-{request.number:06}",
            "created": 0,
            "model": request.body.get("model", "scripted"),
        }
        usage = _usage(answer.usage)
        if not request.body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            return Reply.json(
                {**whole, "object": "chat.completion", "choices": [choice], "usage": usage}
            )
        whole["object"] = "chat.completion.chunk"
        deltas = [{"role": "assistant", "content": ""}, *_deltas(message)]
        chunks = [_chunk(whole, delta, None) for delta in deltas]
        chunks += [_chunk(whole, {}, reason), {**whole, "choices": [], "usage": usage}]
        lines = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
        return Reply([*lines, b"data: [DONE]\n\n"], stream=True)


def _parts(message: Mapping[str, Any]) -> Iterator[Part]:
    role = {"developer": "system", "tool": "user"}.get(message["role"], message["role"])
    content = message.get("content") or ""
    pieces = [content] if isinstance(content, str) else [one.get("text", "") for one in content]
    if message["role"] == "tool":
        yield Part("user", "result", "\n".join(pieces), message["tool_call_id"])
        return
    for text in pieces:
        if text:
            yield Part(role, "text", text)
    for call in message.get("tool_calls") or ():
        yield Part("assistant", "call", call["function"]["arguments"], call["id"])


def _message(request: Request, answer: Answer) -> dict[str, Any]:
    if isinstance(answer, Text):
        return {"role": "assistant", "content": answer.text}
    calls = answer.calls if isinstance(answer, Parallel) else (answer,)
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            _call(f"call_{request.number:06}_{at}", one) for at, one in enumerate(calls)
        ],
    }


def _call(identity: str, call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": json.dumps(dict(call.input))}
    return {"id": identity, "type": "function", "function": function}


def _deltas(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Return a message in pieces."""
    for piece in _cut(message["content"] or ""):
        yield {"content": piece}
    for index, call in enumerate(message.get("tool_calls", ())):
        function = {"name": call["function"]["name"], "arguments": ""}
        yield {"tool_calls": [{**call, "index": index, "function": function}]}
        for piece in _cut(call["function"]["arguments"]):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _cut(text: str) -> Iterator[str]:
    size = -(-len(text) // _STEPS)
    for start in range(0, len(text), size or 1):
        yield text[start : start + size]


def _chunk(
    whole: Mapping[str, Any], delta: Mapping[str, Any], reason: str | None
) -> dict[str, Any]:
    return {**whole, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def _usage(usage: Usage) -> dict[str, Any]:
    asked = usage.input + usage.cache_read + usage.cache_write
    return {
        "prompt_tokens": asked,
        "completion_tokens": usage.output,
        "total_tokens": asked + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read},
    }
