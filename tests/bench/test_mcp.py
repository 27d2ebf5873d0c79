"""`rekindle mcp` answers `initialize` long before a server of the SDK does."""

import json
import shutil
import subprocess
import sys
import time

import pytest

import prerequisites

pytestmark = [pytest.mark.torture, pytest.mark.timeout(600)]

SDK_SERVER = """\
from mcp.server import MCPServer
server = MCPServer("rekindle")
@server.tool()
def status() -> str:
    return "fine"
server.run("stdio")
"""
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.fixture(scope="module")
def sdk(tmp_path_factory):
    """Return a Python with the SDK, which is not among our requirements because of its size."""
    uv, folder = shutil.which("uv"), tmp_path_factory.mktemp("sdk") / "venv"
    if uv is None:
        prerequisites.refuse("uv is not installed")
    python = folder / "bin/python"
    for command in (["venv", str(folder)], ["pip", "install", "--python", str(python), "mcp"]):
        made = subprocess.run([uv, *command], capture_output=True, text=True, check=False)
        if made.returncode:
            prerequisites.refuse(f"the SDK cannot be installed: {made.stderr[-200:]}")
    return python


def measure(argv) -> float:
    """Return the seconds from the start of a server to its answer."""
    began = time.monotonic()
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        server.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        seconds = time.monotonic() - began
        server.stdin.close()
        server.kill()
    assert answer["result"]["protocolVersion"] == "2025-11-25"
    return seconds


def test_initialize_is_answered_five_times_as_fast_as_by_the_sdk(sdk):
    """The fastest of several starts counts, so that another program does not decide."""
    argv = [str(sdk), "-c", SDK_SERVER]
    ours = [sys.executable, "-I", "-m", "rekindle", "mcp"]
    measure(argv), measure(ours)  # compiles the bytecode
    theirs = min(measure(argv) for _ in range(5))
    own = min(measure(ours) for _ in range(5))
    print(f"SDK {theirs:.3f} s, rekindle mcp {own:.3f} s, ratio {theirs / own:.1f}")
    assert theirs >= 5 * own
