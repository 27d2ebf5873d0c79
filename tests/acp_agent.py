"""A scripted agent that speaks the Agent Client Protocol, as a program.

    python acp_agent.py SCRIPT

The script is a JSON file: `initialize` and `new` are added to the answers, `turns` is one list of
steps per prompt of the session, and `journal` is the file that gets everything that happens. Each
step is a mapping with one key:

| key | effect |
|---|---|
| `update` | sends an update of the session |
| `ask` | asks for permission and waits for the answer |
| `print` | prints a line as it is |
| `tool` | runs a command in its own process group and waits for it |
| `silent` | does nothing until the turn is cancelled |
| `answer`, `error` | answers the prompt; the default is `end_turn` |
| `exit` | exits with this code; a negative number is a signal to itself |

Sessions are kept in the folder `sessions` next to the script.
"""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from pathlib import Path


class Agent:
    def __init__(self, path):
        self.script = json.loads(path.read_text())
        self.sessions = path.parent / "sessions"
        self.sessions.mkdir(exist_ok=True)
        self.journal = Path(self.script["journal"])
        self.inbox = queue.SimpleQueue()
        self.asked = 0
        signal.signal(signal.SIGTERM, lambda *_: (self.note("SIGTERM"), os._exit(0)))
        threading.Thread(target=self.read, daemon=True).start()

    def note(self, what):
        with self.journal.open("a") as file:
            file.write(json.dumps(what) + "\n")

    def read(self):
        for line in sys.stdin:
            message = json.loads(line)
            self.note(message)
            if message.get("method") == "session/cancel":
                message["cancelled"] = True
            self.inbox.put(message)
        self.note("end of input")
        if not self.script.get("deaf"):
            os._exit(0)

    def send(self, **message):
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    def update(self, session, update):
        self.send(method="session/update", params={"sessionId": session, "update": update})

    def run(self):
        while True:
            message = self.inbox.get()
            params, number = message.get("params", {}), message.get("id")
            error, result = None, {}
            match message.get("method"):
                case "initialize":
                    result = {"protocolVersion": 1, **self.script.get("initialize", {})}
                case "session/new":
                    session = self.script.get("session", "ses_0000000000001")
                    (self.sessions / session).write_text("[]")
                    result = {"sessionId": session, **self.script.get("new", {})}
                case "session/load" | "session/resume" as method:
                    error = self.script.get(method) or self.find(params["sessionId"])
                    if not error and method == "session/load":
                        self.replay(params["sessionId"])
                    result = self.script.get("new", {})
                case "session/prompt":
                    result, error = self.prompt(params)
                case "session/cancel":
                    continue
            if number is not None and "method" in message:
                answer = {"error": error} if error else {"result": result}
                self.send(id=number, **answer)

    def find(self, session):
        known = (self.sessions / session).exists()
        return None if known else {"code": -32002, "message": "Resource not found"}

    def replay(self, session):
        for text in json.loads((self.sessions / session).read_text()):
            block = {"type": "text", "text": text}
            self.update(session, {"sessionUpdate": "user_message_chunk", "content": block})
            old = {"type": "text", "text": "an old answer"}
            self.update(session, {"sessionUpdate": "agent_message_chunk", "content": old})
        for update in self.script.get("replayed", ()):
            self.update(session, update)

    def prompt(self, params):  # noqa: C901 - one case per kind of step
        session = params["sessionId"]
        file = self.sessions / session
        prompts = json.loads(file.read_text())
        file.write_text(json.dumps([*prompts, params["prompt"][0]["text"]]))
        turns = self.script["turns"]
        for step in turns[min(len(prompts), len(turns) - 1)]:
            ((kind, value),) = step.items()
            match kind:
                case "update":
                    self.update(session, value)
                case "print":
                    print(value, flush=True)
                case "ask":
                    self.ask(session, value)
                case "tool":
                    quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
                    child = subprocess.Popen(value, process_group=0, **quiet)
                    self.note({"tool": child.pid, "agent": os.getpid(), "bridge": os.getppid()})
                    child.wait()
                case "silent":
                    self.note("silent")
                    while not self.inbox.get().get("cancelled"):
                        pass
                    return {"stopReason": "cancelled"}, None
                case "answer":
                    return value, None
                case "error":
                    return None, value
                case "exit":
                    if value < 0:
                        os.kill(os.getpid(), -value)
                    os._exit(value)
        return {"stopReason": "end_turn"}, None

    def ask(self, session, request):
        self.asked += 1
        number = f"ask-{self.asked}"
        params = {"sessionId": session, **request}
        self.send(id=number, method="session/request_permission", params=params)
        while (message := self.inbox.get()).get("id") != number:
            pass
        self.note({"answered": message["result"]["outcome"]})


if __name__ == "__main__":
    Agent(Path(sys.argv[1])).run()
