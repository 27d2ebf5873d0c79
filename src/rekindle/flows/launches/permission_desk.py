"""Ask a person about the tool calls that wait for permission, and pass on the decisions."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import msgspec

from rekindle.documents import events
from rekindle.documents.events.operator_events import DEADLINE
from rekindle.errors import RekindleError
from rekindle.flows.operator.ask_operator import QuestionAsker
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts, TroubleReport
from rekindle.harnesses.untrusted_json import describe_call, parse_object, to_mapping, to_text
from rekindle.hook.permission_gate import DESCRIBED_TOOLS
from rekindle.policy.operator import asked_calls
from rekindle.policy.operator.asked_calls import ALLOW, AskedCall
from rekindle.policy.projection.projection import Projection
from rekindle.stores.files.writer import Writer
from rekindle.system.files import durable_files
from rekindle.thresholds.hook_limits import (
    GATE_MARGIN_SECONDS,
    GATE_REQUEST_BYTES,
    GATE_REQUESTS,
    GATE_SILENCE_SECONDS,
)

_DENIED = "A person denied this call. Do not try it again."
_UNANSWERED = "No person answered the question about this call before its deadline."
_USED = "The approval was already used for the same call."
_UNREADABLE = "Rekindle could not read this call, so no person was asked about it."
_TOO_MANY = (
    f"This launch has already asked for permission {GATE_REQUESTS} times, so no person was asked "
    "about this call."
)


class _Waiter(msgspec.Struct, frozen=True):
    """A gate that holds a call."""

    name: str
    call: AskedCall
    until: datetime
    """Time after which an approval is no longer passed on."""
    question: str = ""


class PermissionDesk:
    """Decides about the calls that wait in one launch.

    A gate that gets no decision refuses its call, so every error here refuses it too. An approval
    is recorded as used before it is passed on. If the supervisor is killed in between, the call is
    refused, and never runs twice.
    """

    def __init__(self, agent: AgentSpec, ports: SupervisorPorts, launch: str) -> None:
        self._agent, self._ports, self._launch = agent, ports, launch
        permissions = agent.persona.permissions
        is_asked = bool(permissions and permissions.ask) or agent.harness.CAN.asks
        self.is_used = is_asked and not agent.stays
        self._files = ports.store.folder(agent.name).brakes(agent.scratch, agent.marks)
        self._asker = QuestionAsker(agent, ports)
        self._waiting: dict[str, _Waiter] = {}
        self._seen: set[str] = set()
        self.digests: set[str] = set()
        """Hashes of all calls that waited, without their folders, which a transcript may not name.
        A person decided about them, or did not answer.
        """

    def check(self) -> bool:
        """Ask about new calls and pass on new decisions. Return whether a call is waiting."""
        if not self.is_used:
            return False
        try:
            self._forget_dead()
            new = self._read_new_requests()
            known = self._ports.store.read(self._agent.name).projection if self._waiting else None
            if new or (known and any(each.question in known.answers for each in self._live())):
                self._decide(new)
        except RekindleError as error:
            self._ports.tell(TroubleReport(str(error)))
        return bool(self._waiting)

    def _live(self) -> list[_Waiter]:
        return list(self._waiting.values())

    def _decide(self, new: list[_Waiter]) -> None:
        asked: list[events.QuestionAsked] = []
        with self._ports.store.writer(self._agent.name) as writer:
            writer.fold()
            for waiter in self._live():
                self._settle(writer, waiter)
            for waiter in new:
                asked += self._place(writer, waiter)
        self._asker.notify_calls(asked)

    def _place(self, writer: Writer, waiter: _Waiter) -> list[events.QuestionAsked]:
        """Use an approval for the same call, or wait for an open question, or ask a new one.

        Return the question to notify the operator of. For an open question, the operator may think
        that no call waits anymore.
        """
        now, known = self._ports.clock(), writer.projection
        taken = {each.question for each in self._live()}
        for question in asked_calls.list_approvals(known, waiter.call.digest):
            if question not in taken:
                self._permit(writer, waiter, question)
                return []
        opened = asked_calls.find_open_question(known, waiter.call.digest, now)
        if opened is not None and opened.question not in taken:
            self._keep(waiter, opened.question)
            return [opened]
        terms = self._asker.make_question_terms()
        asked = asked_calls.ask_about_waiting_call(
            known, waiter.call, self._launch, waiter.until, terms
        )
        self._ports.store.keep_question_number(self._agent.name, asked.number)
        writer.append(asked)
        self._keep(waiter, asked.question)
        return [asked]

    def _keep(self, waiter: _Waiter, question: str) -> None:
        self._waiting[waiter.name] = msgspec.structs.replace(waiter, question=question)

    def _settle(self, writer: Writer, waiter: _Waiter) -> None:
        """Pass on the answer to the waiter's question, if there is one."""
        known: Projection = writer.projection
        answer = known.answers.get(waiter.question)
        if answer is None:
            return
        if answer.choice != ALLOW:
            del self._waiting[waiter.name]
            words = _UNANSWERED if answer.origin == DEADLINE else _DENIED
            self._write(waiter.name, f"deny {waiter.call.digest}\n{words}")
        elif waiter.question in asked_calls.list_approvals(known, waiter.call.digest):
            self._permit(writer, waiter, waiter.question)
        else:
            del self._waiting[waiter.name]
            self._write(waiter.name, f"deny {waiter.call.digest}\n{_USED}")

    def _permit(self, writer: Writer, waiter: _Waiter, question: str) -> None:
        self._waiting.pop(waiter.name, None)
        if not self._is_alive(waiter):
            return  # the approval counts for the next call
        writer.append(
            events.CallPermitted(ts=self._ports.clock(), question=question, launch=self._launch)
        )
        self._write(waiter.name, f"{ALLOW} {waiter.call.digest}\n")

    def _write(self, name: str, text: str) -> None:
        durable_files.replace_file(self._files.answer(self._launch, name), text.encode())

    def _forget_dead(self) -> None:
        for waiter in self._live():
            if not self._is_alive(waiter):
                del self._waiting[waiter.name]

    def _is_alive(self, waiter: _Waiter) -> bool:
        """Return whether the gate still waits, and will wait long enough to read a decision."""
        now = self._ports.clock()
        try:
            status = self._files.request(self._launch, waiter.name).lstat()
        except OSError:
            return False
        return now < waiter.until and now.timestamp() - status.st_mtime < GATE_SILENCE_SECONDS

    def _read_new_requests(self) -> list[_Waiter]:
        waiters = []
        requests = self._files.list_requests(self._launch)
        new = (name for name in requests if name not in self._seen)
        # An agent could forge any number of requests, so each check takes only some of them.
        for name in list(islice(new, GATE_REQUESTS)):
            self._seen.add(name)
            if len(self._seen) > GATE_REQUESTS:
                self._write(name, f"deny -\n{_TOO_MANY}")
            elif (waiter := self._try_request(name)) is None:
                self._write(name, f"deny -\n{_UNREADABLE}")
            elif self._is_alive(waiter):
                waiters.append(waiter)
        return waiters

    def _try_request(self, name: str) -> _Waiter | None:
        try:
            return self._read_request(name)
        except (RekindleError, RecursionError):  # the call may be nested deeply
            return None

    def _read_request(self, name: str) -> _Waiter | None:
        """Return the call in a request, or None if a sandboxed agent wrote something else there."""
        path = self._files.request(self._launch, name)
        data = durable_files.read_bytes(path, GATE_REQUEST_BYTES) or b""
        head, _, rest = data.partition(b"\n")
        call, _, note = rest.partition(b"\n")
        record = parse_object(call)
        folder = to_text(record.get("cwd"))
        tool, arguments = to_text(record.get("tool")), to_mapping(record.get("arguments"))
        if not tool or not head.isdigit():
            return None
        now = self._ports.clock()
        began = min(now, _read_time(head) or now)
        seconds = self._ports.settings.runtime.questions.gate_seconds - GATE_MARGIN_SECONDS
        redaction = self._ports.store.redaction
        about = describe_call(arguments)
        if folder != self._agent.folder:
            inner = folder.removeprefix(f"{self._agent.folder}/")
            about = f"in {inner}: {about}"
        digest = hash_call(tool, arguments)
        if tool in DESCRIBED_TOOLS and (words := to_text(parse_object(note).get("description"))):
            arguments = {"description": words, **arguments}
        # Redaction comes before truncation, because a truncated secret may not be recognized.
        shown = msgspec.json.decode(redaction.json(msgspec.json.encode(arguments)))
        asked = AskedCall(
            digest=hashlib.sha256(call).hexdigest(),
            tool=tool,
            arguments=shown,
            about=redaction.text(about),
            folder=redaction.text(folder),
        )
        self.digests.add(digest)
        return _Waiter(name, asked, began + timedelta(seconds=seconds))


def _read_time(seconds: bytes) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(seconds), UTC)
    except (OverflowError, ValueError, OSError):
        return None


def hash_call(tool: str, arguments: Mapping[str, Any], folder: str = "") -> str:
    """Return the hash of a call, as the gate computes it."""
    ignored = {"description"} if tool in DESCRIBED_TOOLS else set()
    hashed = {key: value for key, value in arguments.items() if key not in ignored}
    call = json.dumps({"arguments": hashed, "cwd": folder, "tool": tool}, sort_keys=True)
    return hashlib.sha256(call.encode()).hexdigest()
