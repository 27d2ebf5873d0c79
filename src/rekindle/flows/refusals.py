"""The tool calls of a launch that its CLI refused, and what follows from them."""

import os
from collections.abc import Iterator, Sequence

import msgspec

from rekindle.documents import event as events
from rekindle.documents.identity import one_line
from rekindle.documents.launch import Exit, RefusedCall
from rekindle.flows import transcripts
from rekindle.flows.launch import Launch
from rekindle.flows.world import Agent
from rekindle.policy.permissions import explain_permit, find_rule
from rekindle.policy.redact.redaction import Redaction
from rekindle.thresholds.texts import ABOUT_CHARACTERS


class Refusals(msgspec.Struct, frozen=True):
    """The refused calls of a launch."""

    missing: tuple[RefusedCall, ...] = ()
    """Those that a person may want to permit."""
    denied: tuple[RefusedCall, ...] = ()
    """Those that the persona's own `deny`, or the protection of Rekindle's files, refused."""

    def record(self, launch: events.LaunchEnded, before: int) -> Iterator[events.CallRefused]:
        """Yield the events of the calls, behind the end of their launch."""
        calls = [(call, False) for call in self.missing] + [(call, True) for call in self.denied]
        for number, (call, denied) in enumerate(calls, before + 1):
            yield events.CallRefused(
                ts=launch.ts,
                launch=launch.launch,
                cycle=launch.cycle,
                tool=call.tool,
                about=one_line(call.about, ABOUT_CHARACTERS),
                permission=call.permission,
                denied=denied,
                of_run=number,
            )


def find_refused(agent: Agent, launch: Launch, redaction: Redaction) -> Refusals:
    """Return the refused calls of a launch, without secrets.

    They are redacted before anything is cut off: half a secret is not recognized. In a terminal the
    CLI asks its person itself.
    """
    if agent.stays:
        return Refusals()
    found = list(launch.watched.refused_calls)
    if path := launch.transcript():
        # A resumed session has the calls of earlier launches too.
        added = max(0, transcripts.size(path) - launch.watched.transcript_began)
        data = transcripts.tail(path)[-added:] if added else b""
        found += agent.harness.refused_calls(data.split(b"\n"))
    found = [_shorten(agent, call) for call in found]
    sorted_out: dict[bool, list[RefusedCall]] = {False: [], True: []}
    for call in found:
        sorted_out[_is_denied(agent, call)].append(_redact(call, redaction))
    return Refusals(tuple(sorted_out[False]), tuple(sorted_out[True]))


def _redact(call: RefusedCall, redaction: Redaction) -> RefusedCall:
    arguments = msgspec.json.decode(redaction.json(msgspec.json.encode(call.arguments)))
    return msgspec.structs.replace(call, about=redaction.text(call.about), arguments=arguments)


def _shorten(agent: Agent, call: RefusedCall) -> RefusedCall:
    return msgspec.structs.replace(call, about=call.about.removeprefix(f"{agent.folder}/"))


def _is_denied(agent: Agent, call: RefusedCall) -> bool:
    """Return whether a persona denies the tool, or the call would write what Rekindle protects."""
    permissions = agent.persona.permissions
    rules = (permissions.deny if permissions else None) or ()
    if {rule.partition("(")[0] for rule in rules} & {call.tool, call.permission}:
        return True
    given = [value for value in call.arguments.values() if isinstance(value, str)]
    paths = [os.path.normpath(os.path.join(agent.folder, value)) for value in given]  # noqa: PTH118 - text, not a file
    return any(_is_in(path, protected) for path in paths for protected in agent.protected)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def without_permission(agent: Agent, refused: Sequence[RefusedCall]) -> Exit:
    """Return how a launch ended that was refused what it needed: with the setting to add."""
    first = refused[0]
    more = f", and {len(refused) - 1} more" if len(refused) > 1 else ""
    call = one_line(f"{first.tool} {first.about}", ABOUT_CHARACTERS)
    permissions = agent.persona.permissions
    allowed = (permissions.allowed_tools if permissions else None) or ()
    rules = [find_rule(one.permission or one.tool, one.arguments, allowed) for one in refused]
    helps = explain_permit(agent.persona_name, agent.persona, rules, agent.harness.NAME)
    words = f"{call}{more}: refused, no permission, and no progress without it"
    return Exit("no-permission", f"{words}; {helps}")
