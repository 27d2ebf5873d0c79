"""The Anthropic Messages API, as far as Claude Code speaks it."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from loopback.log import MAIN, Part, Request
from loopback.schema import fitting
from loopback.script import DONE, Answer, Fail, Parallel, Step, Text, ToolCall, Usage
from loopback.wire import Reply

UNAUTHORIZED: Final = Fail(401, "authentication_error", "invalid x-api-key")
RATE_LIMITED: Final = Fail(429, "rate_limit_error", "This request would exceed the rate limit")
BROKEN: Final = Fail(500, "api_error", "Internal server error")
OVERLOADED: Final = Fail(529, "overloaded_error", "Overloaded")


def too_long(tokens: int = 212_345, maximum: int = 200_000) -> Fail:
    """Return the refusal of a prompt that does not fit the model's window."""
    message = f"prompt is too long: {tokens} tokens > {maximum} maximum"
    return Fail(400, "invalid_request_error", message)


COUNT: Final = "count"
"""A request for the number of tokens."""
PROBE: Final = "probe"
"""Anything but messages: `HEAD /api/hello`, to warm the connection up."""
SUBAGENT: Final = "subagent"
COMPACTION: Final = "compaction"
"""A summary that replaces the conversation."""
STRUCTURED: Final = "structured"
"""An answer in a given form: a title for the session, the verdict of a prompt hook."""
HELPER: Final = "helper"
"""A request to another, small model: the agent of a hook, the reader of a web page."""

_SUMMARY: Final = Text("<analysis>none</analysis>\n<summary>\nthe work so far\n</summary>")


class Anthropic:
    """The dialect of `POST /v1/messages`."""

    def classify(self, method: str, path: str, headers: Mapping[str, str], body: Any) -> str:
        """Tell the main conversation of Claude Code 2.1 from its side requests."""
        match method, _bare(path):
            case "POST", "/v1/messages":
                return _kind(headers, body, list(self.parts(body)))
            case "POST", "/v1/messages/count_tokens":
                return COUNT
            case _:
                return PROBE

    def parts(self, body: Any) -> Iterator[Part]:
        if isinstance(body, dict):
            yield from _parts("system", body.get("system", []))
            for message in body.get("messages", []):
                yield from _parts(message["role"], message["content"])

    def unscripted(self, kind: str, body: Any) -> Step | None:
        if kind in {COUNT, PROBE}:
            return None
        if kind == COMPACTION:
            return _SUMMARY
        if kind == STRUCTURED:
            return Text(json.dumps(fitting(body["output_config"]["format"]["schema"])))
        return DONE

    def plain(self, request: Request) -> Reply:
        if request.kind == COUNT:
            return Reply.json({"input_tokens": len(json.dumps(request.body)) // 4})
        if request.method == "HEAD":
            return Reply.json({})
        return self.fail(request, Fail(404, "not_found_error", f"no {request.path}"))

    def fail(self, request: Request, fail: Fail) -> Reply:
        identity = f"req_{request.number:06}"
        error = {"type": fail.type, "message": fail.message}
        body = {"type": "error", "error": error, "request_id": identity}
        return Reply.json(body, fail.status, {"request-id": identity, **fail.headers})

    def say(self, request: Request, answer: Answer) -> Reply:
        blocks = list(_blocks(request, answer))
        stop = "end_turn" if isinstance(answer, Text) else "tool_use"
        message = {
            "id": f"msg_{request.number:06}",
            "type": "message",
            "role": "assistant",
            "model": request.body["model"],
            "content": blocks,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": _usage(answer.usage),
        }
        headers = {"request-id": f"req_{request.number:06}"}
        if not request.body.get("stream"):
            return Reply.json(message, headers=headers)
        events = [_event(each) for each in _stream(message, blocks)]
        return Reply(events, headers=headers, stream=True)


def _kind(headers: Mapping[str, str], body: dict[str, Any], parts: list[Part]) -> str:
    if "x-claude-code-agent-id" in headers:
        return SUBAGENT
    # The CLI may add a reminder after its request for a summary.
    last = next((part.text for part in reversed(parts) if part.role != "system"), "")
    if last.startswith("CRITICAL: Respond with TEXT ONLY."):
        return COMPACTION
    if "format" in body.get("output_config", {}):
        return STRUCTURED
    # Every turn of a main conversation asks for thinking or names its folder, even without tools
    # and with another system prompt; helpers do neither.
    if "thinking" not in body and not any("# Environment" in part.text for part in parts):
        return HELPER
    return MAIN


def _bare(path: str) -> str:
    return path.partition("?")[0]


def _parts(role: Any, content: Any) -> Iterator[Part]:
    for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        match block["type"]:
            case "text":
                # Claude Code also adds text in the user's name, and marks it.
                added = block["text"].startswith("<system-reminder>")
                yield Part("system" if added else role, "text", block["text"])
            case "tool_use":
                yield Part(role, "call", json.dumps(block["input"]), block["id"])
            case "tool_result":
                text = "\n".join(part.text for part in _parts(role, block.get("content", [])))
                failed = bool(block.get("is_error"))
                yield Part(role, "result", text, block["tool_use_id"], is_error=failed)


def _blocks(request: Request, answer: Answer) -> Iterator[dict[str, Any]]:
    match answer:
        case Text(text=text):
            yield {"type": "text", "text": text}
        case ToolCall() | Parallel():
            calls = answer.calls if isinstance(answer, Parallel) else (answer,)
            for index, call in enumerate(calls):
                identity = f"toolu_{request.number:06}_{index}"
                yield {"type": "tool_use", "id": identity, "name": call.name, "input": call.input}


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }


def _stream(message: dict[str, Any], blocks: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    begun = {**message, "content": [], "stop_reason": None}
    begun["usage"] = {**message["usage"], "output_tokens": 1}
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    for index, block in enumerate(blocks):
        yield from ({**event, "index": index} for event in _block_stream(block))
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    output = {"output_tokens": message["usage"]["output_tokens"]}
    yield {"type": "message_delta", "delta": ended, "usage": output}
    yield {"type": "message_stop"}


def _block_stream(block: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if block["type"] == "text":
        empty, whole = {**block, "text": ""}, block["text"]
        kind, key = "text_delta", "text"
    else:
        empty, whole = {**block, "input": {}}, json.dumps(block["input"])
        kind, key = "input_json_delta", "partial_json"
    yield {"type": "content_block_start", "content_block": empty}
    middle = len(whole) // 2
    for piece in (whole[:middle], whole[middle:]):
        yield {"type": "content_block_delta", "delta": {"type": kind, key: piece}}
    yield {"type": "content_block_stop"}


def _event(data: dict[str, Any]) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()
