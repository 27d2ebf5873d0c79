"""The OpenAI Responses API, as far as Codex speaks it."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from loopback.log import MAIN, Part, Request
from loopback.script import DONE, Answer, Fail, Parallel, Step, Text, ToolCall, Usage
from loopback.wire import Reply

UNAUTHORIZED: Final = Fail(401, "invalid_api_key", "Incorrect API key provided")
RATE_LIMITED: Final = Fail(429, "rate_limit_exceeded", "Rate limit reached for this model")
OUT_OF_QUOTA: Final = Fail(429, "insufficient_quota", "You exceeded your current quota")
UNPAID: Final = Fail(402, "billing_not_active", "Your account is not active")
TOO_LARGE: Final = Fail(413, "request_too_large", "Request body is too large")
BROKEN: Final = Fail(500, "server_error", "The server had an error")
OVERLOADED: Final = Fail(503, "server_is_overloaded", "Our servers are currently overloaded")
IN_STREAM: Final = 200
"""The status of a failure that is reported after the answer has begun."""


def too_long() -> Fail:
    """Return the refusal of a prompt over the model's window, as a stream reports it."""
    message = "Your input exceeds the context window of this model. Please adjust your input."
    return Fail(IN_STREAM, "context_length_exceeded", message)


def usage_limit(resets_at: int, resets_in_s: int) -> Fail:
    """Return the refusal of a subscriber whose hours are used up."""
    more = {"plan_type": "plus", "resets_at": resets_at, "resets_in_seconds": resets_in_s}
    return Fail(429, "usage_limit_reached", "The usage limit has been reached", more=more)


PROBE: Final = "probe"
"""Anything but a response: `GET /v1/models`."""
COMPACTION: Final = "compaction"
"""A summary that replaces the conversation."""
HELPER: Final = "helper"
"""Another conversation than the main one: a sub-agent, a review."""

_SUMMARY: Final = Text("the work so far")
_TYPES: Final = {
    "invalid_api_key": "invalid_request_error",
    "context_length_exceeded": "invalid_request_error",
    "rate_limit_exceeded": "requests",
    "server_is_overloaded": "service_unavailable_error",
}
"""The API names an error by a kind and a code; if they differ, the kind of each code."""
_ADDED: Final = (
    *("<environment_context>", "<user_instructions>", "# AGENTS.md instructions"),
    *("<turn_aborted>", "Another language model started to solve this problem"),
)
_EXIT: Final = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)$", re.MULTILINE)


class OpenAI:
    """The dialect of `POST /v1/responses`."""

    def classify(self, method: str, path: str, headers: Mapping[str, str], body: Any) -> str:
        """Tell the main conversation of Codex 0.166 from its side requests."""
        if (method, path.partition("?")[0]) != ("POST", "/v1/responses"):
            return PROBE
        told = json.loads(headers.get("x-codex-turn-metadata", "{}"))
        if told.get("request_kind") == "compaction":
            return COMPACTION
        return HELPER if "x-openai-subagent" in headers else MAIN

    def parts(self, body: Any) -> Iterator[Part]:
        if isinstance(body, dict):
            if body.get("instructions"):
                yield Part("system", "text", body["instructions"])
            for item in body.get("input", []):
                yield from _parts(item)

    def unscripted(self, kind: str, body: Any) -> Step | None:
        return {PROBE: None, COMPACTION: _SUMMARY}.get(kind, DONE)

    def plain(self, request: Request) -> Reply:
        if request.path.startswith("/v1/models"):
            return Reply.json({"object": "list", "data": [], "models": []})
        return self.fail(request, Fail(404, "not_found", f"no {request.path}"))

    def fail(self, request: Request, fail: Fail) -> Reply:
        error = {"message": fail.message, "code": fail.type, **fail.more}
        headers = {"x-request-id": f"req_{request.number:06}", **fail.headers}
        if fail.status == IN_STREAM:
            response = _response(request, "failed") | {"error": error}
            events = [("response.created", _response(request, "in_progress"))]
            events += [("response.failed", response)]
            stream = _stream({"type": kind, "response": each} for kind, each in events)
            return Reply(stream, headers=headers, stream=True)
        error |= {"type": _TYPES.get(fail.type, fail.type), "param": None}
        return Reply.json({"error": error}, fail.status, headers)

    def say(self, request: Request, answer: Answer) -> Reply:
        items = list(_items(request, answer))
        done = _response(request, "completed") | {"output": items, "usage": _usage(answer.usage)}
        headers = {"x-request-id": f"req_{request.number:06}"}
        if not request.body.get("stream"):
            return Reply.json(done, headers=headers)
        return Reply(_stream(_events(request, done, items)), headers=headers, stream=True)


def _parts(item: Mapping[str, Any]) -> Iterator[Part]:
    match item.get("type", "message"):
        case "message":
            said = item["content"]
            for text in (
                [said] if isinstance(said, str) else [each.get("text", "") for each in said]
            ):
                # Codex also adds text in the user's name, and marks it.
                added = item["role"] == "developer" or text.startswith(_ADDED)
                yield Part("system" if added else item["role"], "text", text)
        case "function_call" | "custom_tool_call":
            asked = item.get("arguments", item.get("input", ""))
            yield Part("assistant", "call", asked, item["call_id"])
        case "function_call_output" | "custom_tool_call_output":
            output = item["output"]
            if not isinstance(output, str):
                output = "\n".join(each.get("text", "") for each in output)
            # No field reports that a command failed: only its output does.
            code = _EXIT.search(output)
            failed = bool(code and code[1] != "0")
            yield Part("user", "result", output, item["call_id"], is_error=failed)


def _items(request: Request, answer: Answer) -> Iterator[dict[str, Any]]:
    match answer:
        case Text(text=text):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            identity = f"msg_{request.number:06}"
            yield {"type": "message", "id": identity, "role": "assistant", "content": content}
        case ToolCall() | Parallel():
            calls = answer.calls if isinstance(answer, Parallel) else (answer,)
            for index, call in enumerate(calls):
                number = f"{request.number:06}_{index}"
                identity = {"id": f"fc_{number}", "call_id": f"call_{number}", "name": call.name}
                if "__" in call.name:  # a tool of a server, or of another set of tools
                    space, _, own = call.name.rpartition("__")
                    identity |= {"namespace": space, "name": own}
                if call.name == "apply_patch":  # the one tool with plain-text input
                    yield {"type": "custom_tool_call", **identity, "input": call.input["input"]}
                else:
                    yield {"type": "function_call", **identity, "arguments": json.dumps(call.input)}


def _usage(usage: Usage) -> dict[str, Any]:
    asked = usage.input + usage.cache_read + usage.cache_write
    return {
        "input_tokens": asked,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
        },
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": asked + usage.output,
    }


def _response(request: Request, status: str) -> dict[str, Any]:
    identity = {"id": f"resp_{request.number:06}", "object": "response", "created_at": 0}
    return {**identity, "status": status, "model": request.body["model"], "output": []}


def _events(
    request: Request, done: dict[str, Any], items: list[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    yield {"type": "response.created", "response": _response(request, "in_progress")}
    for index, item in enumerate(items):
        place = {"output_index": index}
        if item["type"] == "message":
            whole, kind, empty = item["content"][0]["text"], "output_text", {"content": []}
            of = {**place, "item_id": item["id"], "content_index": 0}
        elif item["type"] == "custom_tool_call":
            whole, kind, empty = item["input"], "custom_tool_call_input", {"input": ""}
            of = {**place, "item_id": item["id"]}
        else:
            whole, kind, empty = item["arguments"], "function_call_arguments", {"arguments": ""}
            of = {**place, "item_id": item["id"]}
        begun = {**item, **empty, "status": "in_progress"}
        yield {"type": "response.output_item.added", **place, "item": begun}
        middle = len(whole) // 2
        for piece in (whole[:middle], whole[middle:]):
            yield {"type": f"response.{kind}.delta", **of, "delta": piece}
        yield {
            "type": "response.output_item.done",
            **place,
            "item": {**item, "status": "completed"},
        }
    yield {"type": "response.completed", "response": done}


def _stream(events: Any) -> list[bytes]:
    numbered = ({**event, "sequence_number": number} for number, event in enumerate(events))
    return [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in numbered]
