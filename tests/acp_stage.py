"""Run the bridge to the Agent Client Protocol with a scripted agent."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

AGENT = Path(__file__).with_name("acp_agent.py")
SESSION = "ses_0000000000001"
OPTIONS = [
    {"optionId": "always-1", "kind": "allow_always", "name": "Always"},
    {"optionId": "proceed-mode", "kind": "allow_once", "name": "Yes, and switch the mode"},
    {"optionId": "yes-1", "kind": "allow_once", "name": "Yes"},
    {"optionId": "no-1", "kind": "reject_once", "name": "No"},
]


def say(text):
    content = {"type": "text", "text": text}
    return {"update": {"sessionUpdate": "agent_message_chunk", "content": content}}


def call(number="c1", kind="execute", status="completed", **more):
    start = {"sessionUpdate": "tool_call", "toolCallId": number, "kind": kind, "title": "a tool"}
    end = {"sessionUpdate": "tool_call_update", "toolCallId": number, "status": status}
    return [{"update": {**start, **more}}, {"update": end}]


def ask(number="c1", **more):
    return {"ask": {"toolCall": {"toolCallId": number, **more}, "options": OPTIONS}}


class AcpStage:
    """A folder with a scripted agent, and the bridge that runs it."""

    def __init__(self, folder):
        self.folder, self.journal_file = folder, folder / "journal"
        self.rules = {"seconds": 0.5, "folder": str(folder)}
        self.environment = {}
        self.agent = (sys.executable, str(AGENT), str(folder / "script.json"))
        self.script()

    def script(self, *turns, resume=False, load=True, **more):
        sessions = {"sessionCapabilities": {"resume": {}}} if resume else {}
        can = {"loadSession": load, **sessions}
        own = {"agentInfo": {"name": "Double", "version": "1.2"}, "agentCapabilities": can}
        text = {"journal": str(self.journal_file), "initialize": own, "turns": turns, **more}
        (self.folder / "script.json").write_text(json.dumps(text))

    def start(self, *options, prompt="do it"):
        (self.folder / "rules.json").write_text(json.dumps(self.rules))
        argv = [sys.executable, "-P", "-m", "rekindle.harnesses.acp.acp_bridge"]
        argv += [f"--rules={self.folder}/rules.json", *options, "--"]
        with (self.folder / "prompt").open("w+") as file:
            file.write(prompt)
            file.seek(0)
            return subprocess.Popen(
                [*argv, *self.agent],
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=self.folder,
                env={**os.environ, **self.environment},
                process_group=0,
            )

    def run(self, *options, prompt="do it"):
        child = self.start(*options, prompt=prompt)
        out, self.errors = child.communicate(timeout=120)
        self.code = child.returncode
        self.raw = out.splitlines()
        self.lines = [json.loads(line) for line in self.raw]
        return [line for line in self.lines if line["type"] != "alive"]

    def journal(self):
        if not self.journal_file.exists():
            return []
        return [json.loads(line) for line in self.journal_file.read_text().splitlines()]

    def sent(self):
        return [entry["method"] for entry in self.journal() if "method" in entry]

    def await_entry(self, is_wanted):
        """Return the first journal entry that fits, once there is one."""
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            for entry in self.journal():
                if is_wanted(entry):
                    return entry
            time.sleep(0.01)
        raise AssertionError(self.journal())


def end_group(number):
    """End the tool that a killed agent left behind."""
    try:
        os.killpg(number, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True
