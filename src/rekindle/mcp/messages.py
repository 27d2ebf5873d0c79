"""Messages of the Model Context Protocol: JSON-RPC 2.0, one message per line.

This module uses only the standard library, because a CLI that does not wait for its servers would
otherwise start its first turn without the tools.
"""

import json
from typing import Any

from rekindle import __version__
from rekindle.mcp import tool_table

PROTOCOLS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
"""Supported protocol versions, newest first."""
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
RESOURCE_NOT_FOUND = -32002

Message = dict[str, Any]


class ProtocolError(Exception):
    """A request that gets a JSON-RPC error instead of a result."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def parse(line: bytes) -> Message:
    """Parse a message.

    Raises:
        ProtocolError: The line is not a JSON object.
    """
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(PARSE_ERROR, "the message is not valid JSON") from error
    if not isinstance(message, dict):
        raise ProtocolError(INVALID_REQUEST, "the message is not a JSON object")
    return message


def find_id(message: Message) -> str | int | None:
    """Return a request's id, or None for a notification.

    Raises:
        ProtocolError: The id is neither a string nor a whole number.
    """
    identity = message.get("id")
    if "id" in message and (isinstance(identity, bool) or not isinstance(identity, str | int)):
        raise ProtocolError(INVALID_REQUEST, "the id is neither a string nor a whole number")
    return identity if isinstance(identity, str | int) else None


def find_method(message: Message) -> str:
    """Return a message's method.

    Raises:
        ProtocolError: The message has no method.
    """
    method = message.get("method")
    if not isinstance(method, str):
        raise ProtocolError(INVALID_REQUEST, "the message has no method")
    return method


def read_params(message: Message) -> dict[str, Any]:
    """Return a request's parameters.

    Raises:
        ProtocolError: They are not an object.
    """
    params = message.get("params", {})
    if not isinstance(params, dict):
        raise ProtocolError(INVALID_PARAMS, "params is not an object")
    return params


def render_result(identity: str | int, result: Message) -> bytes:
    """Render the response to a request as one line."""
    return _render({"id": identity, "result": result})


def render_error(identity: str | int | None, error: ProtocolError) -> bytes:
    """Render an error response as one line. The id is null if it could not be read."""
    return _render({"id": identity, "error": {"code": error.code, "message": str(error)}})


def _render(fields: Message) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **fields}).encode() + b"\n"


def answer_directly(method: str, params: dict[str, Any]) -> Message | None:
    """Return the result of a request that needs no files, or None for other requests."""
    match method:
        case "initialize":
            asked = params.get("protocolVersion")
            return {
                "protocolVersion": asked if asked in PROTOCOLS else PROTOCOLS[0],
                "capabilities": {"tools": {}, "resources": {}},
                "serverInfo": {"name": "rekindle", "version": __version__},
                "instructions": tool_table.INSTRUCTIONS,
            }
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [tool.describe() for tool in tool_table.TOOLS.values()]}
        case "resources/list":
            return {"resources": list(tool_table.RESOURCES)}
        case "resources/templates/list":
            return {"resourceTemplates": []}
        case _:
            return None


def make_text_result(text: str, *, is_error: bool = False) -> Message:
    """Return a tool's result: exactly one block of text."""
    return {"content": [{"type": "text", "text": text}], "isError": is_error}
