"""Deliver people's messages to an agent, each exactly once.

`rekindle tell` records a message in the log. A running session gets it from its hook with the
result of the next tool call, any other session in the prompt of its launch. Three rules make sure
that the agent receives it once, whichever process is killed at whichever moment:

1. A session gets a message at most once per launch. Either the message is in the launch's prompt,
   as recorded in `launch.started`, or the hook gives it to the session. Only one hook can do so,
   because it first creates the message's mark exclusively.
2. A message counts as delivered if the session's transcript shows it, and not before. The CLI
   resumes a session from its transcript, so the session knows a message exactly if the transcript
   has it. A killed hook may have created the mark without printing the message, and a killed CLI
   may have lost what its hook printed. In both cases, the transcript does not have the message.
3. The supervisor looks for the message in the transcript while the session is running, when its
   process has exited, and after it has ended the processes of a supervisor that died. The next
   prompt is composed after that, and contains exactly the messages that are still missing.

So between two launches, no process can write to the transcript, and a message is either delivered
or repeated. Within a launch, a lost message is not repeated; it arrives with the next launch. If
no hook has reported a transcript, a prompt counts as read if the program has answered it, or if it
is a program without hooks.
"""

from collections.abc import Iterable, Iterator

from rekindle.documents.events import LaunchStarted, MessageDelivered
from rekindle.documents.person_message import render_message, render_sign
from rekindle.flows.handoff.notice_queue import NoticeQueue
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts
from rekindle.flows.transcripts import transcript_files
from rekindle.policy.projection.projection import Projection


class MessageDelivery:
    """Gives a running session its messages, and records which ones it has received."""

    def __init__(
        self, origin: LaunchStarted, agent: AgentSpec, world: SupervisorPorts, notices: NoticeQueue
    ) -> None:
        self._origin, self._agent, self._ports, self._notices = origin, agent, world, notices
        self._offset, self._shown = 0, set[str]()

    def check(self, known: Projection, session: str, transcript: str) -> None:
        """Offer new messages to the session, and record those that it has received."""
        waiting = [sent for sent in known.waiting_messages if sent.message not in self._shown]
        if not transcript:
            return
        for sent in waiting:
            if sent.message not in self._origin.messages:
                self._notices.add(f"message-{sent.message}", render_message(sent))
        self._notices.advance()
        if not waiting:
            return
        new = transcript_files.read_lines_since(transcript, self._offset)
        self._offset += len(new)
        received = _find_signs([new], [sent.message for sent in waiting])
        self._shown |= {*received}
        delivered = [
            make_delivery(self._ports, self._origin.launch, session, name, self._origin.messages)
            for name in received
        ]
        if delivered:
            with (
                self._ports.report_trouble(),
                self._ports.store.writer(self._agent.name) as writer,
            ):
                writer.append(*delivered)


def make_delivery(
    ports: SupervisorPorts, launch: str, session: str, message: str, prompted: Iterable[str]
) -> MessageDelivered:
    return MessageDelivered(
        ts=ports.clock(),
        message=message,
        session=session,
        launch=launch,
        how="prompt" if message in prompted else "hook",
    )


def find_deliveries(
    ports: SupervisorPorts,
    known: Projection,
    launch: str,
    session: str,
    *,
    transcript: str,
    is_read: bool,
) -> list[MessageDelivered]:
    """Return the deliveries that an ended launch has not recorded.

    `is_read` is whether the program has read its prompt for sure, although it left no transcript.
    """
    waiting = [sent.message for sent in known.waiting_messages]
    if not waiting:
        return []
    record = known.attempts.get(launch)
    prompted = record.messages if record else ()
    if transcript and transcript_files.read_size(transcript):
        received = _find_signs(transcript_files.read_lines(transcript), waiting)
    else:
        received = [name for name in waiting if name in prompted and is_read]
    return [make_delivery(ports, launch, session, name, prompted) for name in received]


def _find_signs(pieces: Iterable[bytes], messages: list[str]) -> list[str]:
    """Return the messages that a transcript shows."""

    def find_all() -> Iterator[str]:
        for piece in pieces:
            yield from (name for name in messages if render_sign(name).encode() in piece)

    shown = {*find_all()}
    return [name for name in messages if name in shown]
