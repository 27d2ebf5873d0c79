"""The bridge: run one turn of an agent that speaks the Agent Client Protocol.

    python -P -m rekindle.harnesses.acp.acp_bridge [OPTION…] -- AGENT ARGUMENT… < PROMPT

It prints the lines that `acp_updates` describes. The last one is `ended`, with the `stop` reason,
the `usage` and `failure` of the turn, the number of `calls`, the `closing` text after the last
call, whether that call was `rejected`, the `model`, the longest `context`, and the turn's cost in
`usd`. If the agent refused a request, it has the `error` and its `method`.

The bridge offers neither files nor terminals, so the agent uses its own, inside the sandbox in
which it was started. Only the first answer has a timeout: later, the supervisor notices if there
are no more lines. On SIGTERM, the bridge cancels the turn, then closes the agent's standard input.
Without a supervisor, each call that must wait for a person is rejected.
"""

import contextlib
import json
import os
import queue
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

from rekindle.harnesses.acp import call_rules
from rekindle.harnesses.acp.acp_calls import AcpCall
from rekindle.harnesses.acp.acp_updates import AcpUpdates
from rekindle.harnesses.acp.agent_link import ENDED, AgentLink, Message
from rekindle.hook import permission_gate
from rekindle.thresholds.bridge_limits import ACP_CANCEL_SECONDS, ACP_START_SECONDS

VERSION = 1
"""Version of the protocol. Version 2 is a draft with other turns."""
METHOD_MISSING = -32601
_STOP: Message = {"stop": True}
_FAILURES = {"jetbrains": {"air": {"version": 1, "capabilities": ["sessionFailure"]}}}
"""Extension with which two adapters report why a turn failed."""
_OPEN_RULES: call_rules.Rules = {
    "allowed": None,
    "deny": [],
    "ask": [],
    "protected": [],
    "folder": "/",
    "draft": "",
    "seconds": 0.0,
}
_DOUBT = "does its command start an agent that speaks the Agent Client Protocol?"
_LASTING = ("always", "mode", "auto", "session")
"""Words in options that permit more than one call."""


class AgentRefusalError(Exception):
    """The agent answered a request with an error."""

    def __init__(self, method: str, error: object) -> None:
        super().__init__(method)
        self.method = method
        self.error = error if isinstance(error, dict) else {"message": str(error)}


class SetupError(AgentRefusalError):
    """The agent cannot be used as it is set up, and a retry would not change that."""

    def __init__(self, method: str, words: str) -> None:
        super().__init__(method, {"message": words, "data": {"errorKind": "setup"}})


class AgentEndedError(Exception):
    """The agent exited before it answered a request."""


class BridgeStopError(Exception):
    """The bridge was asked to stop."""


class AcpBridge:
    """Drives one agent through one turn."""

    def __init__(self, argv: list[str], options: dict[str, str], rules: call_rules.Rules) -> None:
        self._options, self._rules = options, rules
        self._link = AgentLink(argv)
        self._updates = AcpUpdates(print_line, float(options.get("spent", 0)))
        self._session = options.get("session", "")
        self._turn = 0
        """Number of the prompt's request; 0 before it was sent."""

    def stop(self) -> None:
        """Interrupt the turn. Signal handlers may call this."""
        self._link.messages.put(_STOP)

    def run(self, prompt: str) -> int:
        """Run the turn, print how it ended, and return the bridge's exit code."""
        ended: dict[str, Any] = {}
        code = 0
        try:
            self._open()
            blocks = [{"type": "text", "text": prompt}]
            params = {"sessionId": self._session, "prompt": blocks}
            self._turn = self._link.request("session/prompt", params)
            ended = self._read_result(self._wait_for("session/prompt", self._turn))
        except AgentRefusalError as error:
            ended, code = {"error": error.error, "method": error.method}, 1
        except AgentEndedError:
            ended, code = {"error": {"message": "the agent exited"}, "method": "exit"}, 1
        except BridgeStopError:
            ended, code = {**self._cancel(), "stop": "cancelled"}, 128 + signal.SIGTERM
        self._updates.flush()
        print_line({"type": "ended", **self._describe_turn(), **ended})
        exit_code = self._link.close()
        if ended.get("method") == "exit":
            return exit_code if exit_code > 0 else 128 - exit_code if exit_code else 1
        return code

    def _open(self) -> None:
        """Open the session, with the persona's model and the mode in which the agent asks."""
        offered = {"clientCapabilities": {"_meta": _FAILURES}}
        info = {"name": "rekindle", "version": "1"}
        number = self._link.request(
            "initialize", {"protocolVersion": VERSION, **offered, "clientInfo": info}
        )
        try:
            deadline = time.monotonic() + ACP_START_SECONDS
            told = self._wait_for("initialize", number, deadline)
        except queue.Empty:
            words = f"it did not answer for {ACP_START_SECONDS:.0f} seconds: {_DOUBT}"
            raise SetupError("initialize", words) from None
        if (version := told.get("protocolVersion")) != VERSION:
            words = f"it speaks version {version} of the protocol, not {VERSION}"
            raise SetupError("initialize", words if version else f"its answer is wrong: {_DOUBT}")
        how, answer = self._open_session(_to_mapping(told.get("agentCapabilities")))
        agent = _to_mapping(told.get("agentInfo"))
        self._updates.model = self._options.get("model") or find_model(answer)
        line = {"session": self._session, "how": how, "model": self._updates.model}
        named = {"agent": agent.get("name"), "version": agent.get("version")}
        for category in ("model", "mode"):
            if value := self._options.get(category):
                self._choose(answer, category, value)
        print_line({"type": "opened", **line, **named})

    def _open_session(self, can: Message) -> tuple[str, Message]:
        """Start a new session or return to the old one. Return how, and the agent's answer."""
        place = {"cwd": os.getcwd(), "mcpServers": []}  # noqa: PTH109 - as the agent sees it
        if not self._session:
            answer = self._call("session/new", place)
            self._session = str(answer.get("sessionId") or "")
            if not self._session:
                raise AgentRefusalError("session/new", {"message": "it named no session"})
            return "new", answer
        wanted = {"sessionId": self._session, **place}
        if _to_mapping(can.get("sessionCapabilities")).get("resume") is not None:
            try:
                return "resume", self._call("session/resume", wanted)
            except AgentRefusalError as error:
                # Some versions advertise the method without having it.
                if error.error.get("code") != METHOD_MISSING:
                    raise
        if not can.get("loadSession"):
            words = "it can neither load nor resume a session"
            raise AgentRefusalError("session/load", {"message": words})
        self._updates.is_replay = True
        try:
            return "load", self._call("session/load", wanted)
        finally:
            self._updates.is_replay = False

    def _choose(self, answer: Message, category: str, value: str) -> None:
        """Choose a model or a mode that the agent offered.

        Raises:
            SetupError: The agent does not offer it.
        """
        for option in _to_list(answer.get("configOptions")):
            if option.get("category") == category and value in _list_values(option):
                params = {"configId": option.get("id"), "value": value}
                self._call("session/set_config_option", {"sessionId": self._session, **params})
                return
        modes = _to_list(_to_mapping(answer.get("modes")).get("availableModes"))
        if category == "mode" and value in [mode.get("id") for mode in modes]:
            self._call("session/set_mode", {"sessionId": self._session, "modeId": value})
            return
        words = f"it does not offer the {category} {value!r}"
        raise SetupError(f"session/set_{category}", words)

    def _call(self, method: str, params: Message) -> Message:
        return self._wait_for(method, self._link.request(method, params))

    def _wait_for(self, method: str, number: int, deadline: float | None = None) -> Message:
        """Handle messages until the answer to a request arrives, and return it."""
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            message = self._link.take(left)
            if message is ENDED:
                raise AgentEndedError
            if message is _STOP:
                raise BridgeStopError
            if "method" in message:
                self._handle(message)
            elif "decided" in message:
                self._answer_permission(message)
            elif message.get("id") == number:
                if "error" in message:
                    raise AgentRefusalError(method, message["error"])
                return _to_mapping(message.get("result"))

    def _handle(self, message: Message) -> None:
        """Handle a notification or a request of the agent."""
        params = _to_mapping(message.get("params"))
        if message["method"] == "initialize":
            raise SetupError("initialize", f"it repeats what it reads: {_DOUBT}")
        is_ours = params.get("sessionId") == self._session
        if message["method"] == "session/update" and is_ours:
            self._updates.take(_to_mapping(params.get("update")))
        elif message["method"] == "session/request_permission" and "id" in message:
            self._decide(message["id"], params)
        elif "id" in message:
            self._link.refuse(message["id"], METHOD_MISSING, "not offered")

    def _decide(self, number: object, params: Message) -> None:
        """Decide about a call, or let a thread wait for a person's decision."""
        call = self._updates.find_call(_to_mapping(params.get("toolCall")))
        self._updates.report(call)
        decision = call_rules.decide_call(self._rules, call)
        request = {"number": number, "call": call, "options": _to_list(params.get("options"))}
        if decision != "ask":
            self._answer_permission({**request, "decided": decision})
            return
        print_line({"type": "decided", "decision": decision, **call.render()})

        def wait() -> None:
            answer = hold_call(call, self._rules)
            self._link.messages.put({**request, "decided": answer})

        threading.Thread(target=wait, daemon=True).start()

    def _answer_permission(self, request: Message) -> None:
        """Choose the option for a decision by its kind, because the ids are the agent's own."""
        call, decision = request["call"], request["decided"]
        is_allowed = decision == "allow"
        call.is_refused = not is_allowed
        print_line({"type": "decided", "decision": decision, **call.render()})
        chosen = find_option(request["options"], "allow_once" if is_allowed else "reject_once")
        outcome = (
            {"outcome": "selected", "optionId": chosen} if chosen else {"outcome": "cancelled"}
        )
        self._link.answer(request["number"], {"outcome": outcome})

    def _cancel(self) -> Message:
        """Cancel the turn, and let the agent store its session. Return its answer."""
        if not self._turn:
            return {}
        self._link.notify("session/cancel", {"sessionId": self._session})
        deadline = time.monotonic() + ACP_CANCEL_SECONDS
        with contextlib.suppress(Exception):  # the agent is ended next, whatever it answers
            return self._read_result(self._wait_for("session/prompt", self._turn, deadline))
        return {}

    def _read_result(self, result: Message) -> Message:
        """Return how the agent says that the turn ended."""
        air = _to_mapping(_to_mapping(result.get("_meta")).get("jetbrains")).get("air")
        return {
            "stop": result.get("stopReason"),
            "usage": result.get("usage"),
            "failure": _to_mapping(air).get("sessionFailure"),
        }

    def _describe_turn(self) -> Message:
        updates = self._updates
        is_short = updates.closing_length == len(updates.closing)
        return {
            "calls": updates.finished_calls,
            "closing": updates.closing if is_short else "",
            "spoke": updates.closing_length > 0,
            "rejected": updates.last_call is not None and updates.last_call.is_refused,
            "usd": updates.usd,
            "model": updates.model,
            "context": updates.longest_context,
        }


def hold_call(call: AcpCall, rules: call_rules.Rules) -> str:
    """Wait for a person's decision, and return `allow` or `reject`. Every failure rejects."""
    held = {"arguments": call.arguments, "cwd": os.getcwd(), "tool": call.tool}  # noqa: PTH109 - as above
    try:
        data = json.dumps(held, sort_keys=True).encode()
        scratch = rules["scratch"]
        decision, _ = permission_gate.hold_call(data, b"{}", scratch, rules["seconds"])
    except (OSError, KeyError, ValueError, TypeError):
        return "reject"
    return "allow" if decision == "allow" else "reject"


def find_option(options: list[Message], kind: str) -> str:
    """Return the id of the option that permits or rejects only this call, or ""."""
    fitting = [str(option.get("optionId")) for option in options if option.get("kind") == kind]
    narrow = [one for one in fitting if not any(word in one.lower() for word in _LASTING)]
    return next(iter([*narrow, *fitting]), "")


def print_line(line: dict[str, Any]) -> None:
    data = json.dumps(line).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def find_model(answer: Message) -> str:
    """Return the id of the session's model, or ""."""
    options = _to_list(answer.get("configOptions"))
    chosen = (each.get("currentValue") for each in options if each.get("category") == "model")
    value = next(chosen, None) or _to_mapping(answer.get("models")).get("currentModelId")
    return value if isinstance(value, str) else ""


def _list_values(option: Message) -> list[object]:
    """Return the values of an option, which may be in groups."""
    listed = _to_list(option.get("options"))
    inner = [value for group in listed for value in _to_list(group.get("options"))]
    return [value.get("value") for value in (*listed, *inner)]


def _to_mapping(value: object) -> Message:
    return value if isinstance(value, dict) else {}


def _to_list(value: object) -> list[Message]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def main(arguments: list[str]) -> NoReturn:
    """Read the options and the prompt, and run the turn."""
    place = arguments.index("--")
    pairs = (word.removeprefix("--").partition("=") for word in arguments[:place])
    options = {name: value for name, _, value in pairs}
    rules = {**_OPEN_RULES, "folder": os.getcwd()}  # noqa: PTH109 - as above
    if path := options.get("rules"):
        rules |= json.loads(Path(path).read_bytes())
        rules["scratch"] = str(Path(path).parent)
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    if path := options.get("instructions"):
        prompt = f"{Path(path).read_text()}\n\n{prompt}"
    try:
        bridge = AcpBridge(arguments[place + 1 :], options, rules)
    except OSError as error:
        os.write(2, f"{arguments[place + 1]}: {error.strerror}\n".encode())
        raise SystemExit(127) from None
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: bridge.stop())
    raise SystemExit(bridge.run(prompt))


if __name__ == "__main__":
    main(sys.argv[1:])
