"""Record the session of a CLI that has no hooks."""

from rekindle.documents import events
from rekindle.documents.events import LaunchStarted
from rekindle.documents.launches.launch_types import SessionOpened
from rekindle.flows.launches.output_transcript import OutputTranscriber
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts


def note_session(
    opened: SessionOpened,
    origin: LaunchStarted,
    agent: AgentSpec,
    world: SupervisorPorts,
    transcribe: OutputTranscriber | None,
) -> None:
    """Record the session of a CLI that has no hooks, so that it can be resumed after a crash.

    Only the output names the session, and a supervisor that is killed loses it.
    """
    can = agent.harness.CAN
    if can.hooks or not can.resumes:
        return
    if transcribe is not None:
        transcribe.set_session(opened.session)
    started = events.SessionStarted(
        ts=world.clock(),
        session=opened.session,
        harness=agent.harness.NAME,
        source="resume" if origin.resumes else "startup",
        launch=origin.launch,
    )
    with world.report_trouble(), world.store.writer(agent.name) as writer:
        writer.append(started)
