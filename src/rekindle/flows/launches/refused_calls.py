"""Find the tool calls that the CLI refused, and build events and exits from them."""

import os
from collections.abc import Iterator, Sequence

import msgspec

from rekindle.documents import events
from rekindle.documents.launches.launch_types import LaunchExit, RefusedCall
from rekindle.flows.launches.launch import Launch
from rekindle.flows.launches.permission_desk import hash_call
from rekindle.flows.supervisor_ports import AgentSpec
from rekindle.flows.transcripts import transcript_files
from rekindle.formats.identifiers import to_one_line
from rekindle.policy.redact.redaction import Redaction
from rekindle.policy.setup.deny_rules import is_denied
from rekindle.policy.setup.permissions import explain_permit, find_rule
from rekindle.thresholds.texts import ABOUT_CHARACTERS


class RefusedCalls(msgspec.Struct, frozen=True):
    """Tool calls that the CLI refused during a launch."""

    missing: tuple[RefusedCall, ...] = ()
    """Refused calls that the operator may want to allow."""
    denied: tuple[RefusedCall, ...] = ()
    """Calls refused by a person, by the persona's `deny` rules or because they write to protected
    files.
    """

    def record(self, launch: events.LaunchEnded, before: int) -> Iterator[events.CallRefused]:
        """Yield an event for each refused call, to be appended after the launch's end."""
        calls = [(call, False) for call in self.missing] + [(call, True) for call in self.denied]
        for number, (call, denied) in enumerate(calls, before + 1):
            yield events.CallRefused(
                ts=launch.ts,
                launch=launch.launch,
                cycle=launch.cycle,
                tool=call.tool,
                about=to_one_line(call.about, ABOUT_CHARACTERS),
                permission=call.permission,
                denied=denied,
                of_run=number,
            )


def find_refused_calls(agent: AgentSpec, launch: Launch, redaction: Redaction) -> RefusedCalls:
    """Return a launch's refused calls, redacted.

    Redaction comes before truncation, because a truncated secret may not be recognized. An agent in
    a terminal has no refused calls: its CLI asks the user instead.
    """
    if agent.stays:
        return RefusedCalls()
    calls = list(launch.watched.refused_calls)
    if path := launch.transcript():
        # A resumed session's transcript includes calls from earlier launches.
        added = max(0, transcript_files.read_size(path) - launch.watched.transcript_began)
        data = transcript_files.read_tail(path)[-added:] if added else b""
        calls += agent.harness.refused_calls(data.split(b"\n"))
    by_denied: dict[bool, list[RefusedCall]] = {False: [], True: []}
    for call in calls:
        # A person was asked about the call, so it is not missing a permission.
        was_asked = hash_call(call.tool, call.arguments) in launch.asked_digests
        shown = _redact(_shorten(agent, call), redaction)
        by_denied[was_asked or _is_denied(agent, call)].append(shown)
    return RefusedCalls(tuple(by_denied[False]), tuple(by_denied[True]))


def _redact(call: RefusedCall, redaction: Redaction) -> RefusedCall:
    arguments = msgspec.json.decode(redaction.json(msgspec.json.encode(call.arguments)))
    return msgspec.structs.replace(call, about=redaction.text(call.about), arguments=arguments)


def _shorten(agent: AgentSpec, call: RefusedCall) -> RefusedCall:
    return msgspec.structs.replace(call, about=call.about.removeprefix(f"{agent.folder}/"))


def _is_denied(agent: AgentSpec, call: RefusedCall) -> bool:
    """Return whether the call matches a `deny` rule or writes to a protected path."""
    permissions = agent.persona.permissions
    rules = (permissions.deny if permissions else None) or ()
    if is_denied(rules, call, agent.folder, agent.environment.get("HOME", "")):
        return True
    given = [value for value in call.arguments.values() if isinstance(value, str)]
    paths = [os.path.normpath(os.path.join(agent.folder, value)) for value in given]  # noqa: PTH118 - paths are strings
    return any(_is_in(path, protected) for path in paths for protected in agent.protected)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def make_refused_exit(agent: AgentSpec, refused: Sequence[RefusedCall]) -> LaunchExit:
    """Return an exit that explains which permission was missing and how to add it."""
    first = refused[0]
    more = f", and {len(refused) - 1} more" if len(refused) > 1 else ""
    call = to_one_line(f"{first.tool} {first.about}", ABOUT_CHARACTERS)
    permissions = agent.persona.permissions
    allowed = (permissions.allowed_tools if permissions else None) or ()
    rules = [
        find_rule(refused_call.permission or refused_call.tool, refused_call.arguments, allowed)
        for refused_call in refused
    ]
    helps = explain_permit(agent.persona_name, agent.persona, rules, agent.harness.NAME)
    words = f"{call}{more}: refused, no permission, and no progress was made"
    return LaunchExit("no-permission", f"{words}; {helps}")
