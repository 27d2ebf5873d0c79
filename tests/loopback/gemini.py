"""The Gemini API, as far as Gemini CLI speaks it."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from loopback.log import MAIN, Part, Request
from loopback.schema import fitting
from loopback.script import DONE, Answer, Fail, Parallel, Step, Text, ToolCall, Usage
from loopback.wire import Reply

UNAUTHORIZED: Final = Fail(
    401, "UNAUTHENTICATED", "Request had invalid authentication credentials."
)
RATE_LIMITED: Final = Fail(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted")
UNPAID: Final = Fail(402, "PAYMENT_REQUIRED", "This account has to pay before it is served.")
TOO_LARGE: Final = Fail(413, "REQUEST_TOO_LARGE", "Request payload size exceeds the limit.")
NO_BILLING: Final = Fail(
    403,
    "PERMISSION_DENIED",
    "This API method requires billing to be enabled. Please enable billing on project #1.",
    more={
        "details": [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "BILLING_DISABLED",
                "domain": "googleapis.com",
            }
        ]
    },
)
DEPLETED: Final = Fail(
    429,
    "RESOURCE_EXHAUSTED",
    "Your prepayment credits are depleted. Please go to AI Studio to manage your billing.",
)
BROKEN: Final = Fail(500, "INTERNAL", "An internal error has occurred.")
OVERLOADED: Final = Fail(503, "UNAVAILABLE", "The model is overloaded. Please try again later.")
WRONG_KEY: Final = Fail(
    400,
    "INVALID_ARGUMENT",
    "API key not valid. Please pass a valid API key.",
    more={
        "details": [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": "API_KEY_INVALID",
                "domain": "googleapis.com",
            }
        ]
    },
)


def too_long(tokens: int = 1_248_576, maximum: int = 1_048_576) -> Fail:
    """Return the refusal of a prompt that does not fit the model's window."""
    exceeds = "exceeds the maximum number of tokens allowed"
    message = f"The input token count ({tokens}) {exceeds} ({maximum})."
    return Fail(400, "INVALID_ARGUMENT", message)


def out_of_quota(retry_s: float, quota: str = "GenerateRequestsPerDayPerProject") -> Fail:
    """Return the refusal for an account that used up its requests of a day, or of a minute."""
    kinds = "type.googleapis.com/google.rpc."
    violation = {"quotaMetric": "requests", "quotaId": quota, "quotaValue": "250"}
    details = [
        {"@type": f"{kinds}QuotaFailure", "violations": [violation]},
        {"@type": f"{kinds}RetryInfo", "retryDelay": f"{retry_s}s"},
    ]
    message = f"You exceeded your current quota. Please retry in {retry_s}s."
    return Fail(429, "RESOURCE_EXHAUSTED", message, more={"details": details})


COUNT: Final = "count"
"""A request for the number of tokens."""
PROBE: Final = "probe"
"""A request that is not for a model."""
COMPACTION: Final = "compaction"
"""A summary that replaces the conversation."""
STRUCTURED: Final = "structured"
"""An answer in a given form: the model to use, the next speaker, whether it runs in circles."""
SUBAGENT: Final = "subagent"
HELPER: Final = "helper"
"""Another conversation without the main one's tools: a summary of a tool's output, a web search."""

_SUMMARY: Final = Text(
    "<state_snapshot><overall_goal>the work so far</overall_goal></state_snapshot>"
)
_ADDED: Final = re.compile(r"<(hook_context|session_context|state_snapshot)>.*?</\1>\s*", re.DOTALL)
"""Text that the CLI adds before the user's words, or in messages in their name."""
_EXIT: Final = re.compile(r"^Exit Code: (-?\d+)$", re.MULTILINE)


class Gemini:
    """The dialect of `:streamGenerateContent`, `:generateContent` and `:countTokens`."""

    def classify(self, method: str, path: str, headers: Mapping[str, str], body: Any) -> str:
        """Tell the main conversation of Gemini CLI 0.61 from its side requests."""
        match method, _verb(path):
            case "POST", "countTokens":
                return COUNT
            case "POST", "generateContent" | "streamGenerateContent":
                return _kind(body)
            case _:
                return PROBE

    def parts(self, body: Any) -> Iterator[Part]:
        if isinstance(body, dict):
            for part in _list(body.get("systemInstruction", {}).get("parts", [])):
                yield Part("system", "text", part["text"])
            for content in _list(body.get("contents", [])):
                for part in _list(content.get("parts", [])):
                    yield from _parts(content.get("role", "user"), part)

    def unscripted(self, kind: str, body: Any) -> Step | None:
        if kind == STRUCTURED:
            config = body["generationConfig"]
            schema = config.get("responseJsonSchema") or config.get("responseSchema") or {}
            return Text(json.dumps(fitting(schema)))
        return {COUNT: None, PROBE: None, COMPACTION: _SUMMARY}.get(kind, DONE)

    def plain(self, request: Request) -> Reply:
        if request.kind == COUNT:
            return Reply.json({"totalTokens": len(json.dumps(request.body)) // 4})
        return self.fail(request, Fail(404, "NOT_FOUND", f"no {request.path}"))

    def fail(self, request: Request, fail: Fail) -> Reply:
        error = {"code": fail.status, "message": fail.message, "status": fail.type, **fail.more}
        return Reply.json({"error": error}, fail.status, fail.headers)

    def say(self, request: Request, answer: Answer) -> Reply:
        chunks = list(_chunks(request, list(_said(request, answer)), _usage(answer.usage)))
        if _verb(request.path) == "streamGenerateContent":
            return Reply(
                [f"data: {json.dumps(each)}\r\n\r\n".encode() for each in chunks], stream=True
            )
        whole = chunks[-1]
        parts = [part for each in chunks for part in each["candidates"][0]["content"]["parts"]]
        whole["candidates"][0]["content"]["parts"] = parts
        return Reply.json(whole)


def _kind(body: Mapping[str, Any]) -> str:
    if body.get("generationConfig", {}).get("responseMimeType") == "application/json":
        return STRUCTURED
    system = _list(body.get("systemInstruction", {}).get("parts", []))
    if any("<state_snapshot>" in part["text"] for part in system) and not body.get("tools"):
        return COMPACTION
    declared = [each for one in body.get("tools", []) for each in one["functionDeclarations"]]
    if any(each["name"] == "complete_task" for each in declared):
        return SUBAGENT
    return MAIN if body.get("tools") else HELPER


def _verb(path: str) -> str:
    return path.partition("?")[0].rpartition(":")[2]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _parts(role: str, part: Mapping[str, Any]) -> Iterator[Part]:
    match part:
        case {"functionCall": call}:
            yield Part("assistant", "call", json.dumps(call.get("args", {})), call.get("id", ""))
        case {"functionResponse": result}:
            said = result["response"]
            text = str(said.get("output", said.get("error", said)))
            code = _EXIT.search(text)  # the only sign of a command that ran and failed
            failed = "error" in said or bool(code and code[1] != "0")
            yield Part("user", "result", text, result.get("id", ""), is_error=failed)
        case {"text": text} if role == "model":
            yield Part("assistant", "text", text)
        case {"text": text}:
            rest = text
            while added := _ADDED.match(rest):
                yield Part("system", "text", added[0])
                rest = rest[added.end() :]
            if rest:
                yield Part("user", "text", rest)


def _said(request: Request, answer: Answer) -> Iterator[list[dict[str, Any]]]:
    """Return the parts of each piece of the stream."""
    match answer:
        case Text(text=text):
            middle = len(text) // 2
            yield [{"text": text[:middle]}]
            yield [{"text": text[middle:]}]
        case ToolCall() | Parallel():
            calls = answer.calls if isinstance(answer, Parallel) else (answer,)
            yield from ([{"text": call.said}] for call in calls if call.said)
            yield [
                {"functionCall": {"name": call.name, "args": call.input, "id": identity}}
                for index, call in enumerate(calls)
                for identity in [f"call_{request.number:06}_{index}"]
            ]


def _chunks(
    request: Request, pieces: list[list[dict[str, Any]]], usage: dict[str, int]
) -> Iterator[dict[str, Any]]:
    for number, parts in enumerate(pieces, 1):
        candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
        chunk = {"modelVersion": _model(request.path), "responseId": f"r{request.number:06}"}
        if number == len(pieces):
            candidate["finishReason"] = "STOP"
            yield {"candidates": [candidate], "usageMetadata": usage, **chunk}
        else:
            yield {"candidates": [candidate], **chunk}


def _model(path: str) -> str:
    return path.partition("/models/")[2].partition(":")[0]


def _usage(usage: Usage) -> dict[str, int]:
    asked = usage.input + usage.cache_read + usage.cache_write
    return {
        "promptTokenCount": asked,
        "cachedContentTokenCount": usage.cache_read,
        "candidatesTokenCount": usage.output,
        "totalTokenCount": asked + usage.output,
    }
