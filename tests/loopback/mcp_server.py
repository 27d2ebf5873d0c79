"""An MCP server with one tool, which creates a file."""

import json
import pathlib
import sys

TOOL = {
    "name": "put",
    "description": "make a file",
    "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}},
}


def answer(method: str, given: dict) -> dict:
    match method:
        case "initialize":
            return {
                "protocolVersion": given["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "files", "version": "1"},
            }
        case "tools/list":
            return {"tools": [TOOL]}
        case "tools/call":
            pathlib.Path(given["arguments"]["path"]).touch()
            return {"content": [{"type": "text", "text": "it is made"}]}
        case _:
            return {}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        found = answer(asked["method"], asked.get("params", {}))
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": found}), flush=True)
