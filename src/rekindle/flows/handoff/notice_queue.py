"""Give a running session the supervisor's messages through its hook, one after the other."""

from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts
from rekindle.policy.handoff import window_rule
from rekindle.system.files import durable_files


class NoticeQueue:
    """The messages for one launch. The hook gives each of them to the agent at most once.

    The file for the hook has only one message. The next one replaces it when the hook has created
    the mark of the first one, so that no hook can give the agent two versions of a message.
    """

    def __init__(self, agent: AgentSpec, world: SupervisorPorts, launch: str) -> None:
        self._brake = agent.harness.brake(interactive=agent.stays)
        self._files = world.store.folder(agent.name).brakes(agent.scratch, agent.marks)
        self._launch, self._waiting = launch, dict[str, str]()
        self._transcript = self._written = ""

    def set_transcript(self, transcript: str) -> None:
        """Set the session's transcript, which tells the session from its sub-agents."""
        self._transcript = transcript

    def add(self, mark: str, text: str) -> None:
        """Add a message, unless it was added before. `mark` is its name."""
        if self._brake is not None and self._brake.told_at:
            self._waiting.setdefault(mark, text)
            self.advance()

    def discard(self, mark: str) -> None:
        """Remove a message that is not needed any more. The agent may get it nevertheless."""
        if mark in self._waiting:
            self._waiting[mark] = ""

    def advance(self) -> None:
        """Give the hook the next message if the agent has got the last one."""
        if not self._transcript or self._brake is None:
            return
        for mark, text in self._waiting.items():
            if text and not self._is_marked(mark):
                if self._written != mark:
                    notice = window_rule.render_notice(self._brake, self._transcript, text, mark)
                    durable_files.replace_file(self._files.notice(self._launch), notice)
                    self._written = mark
                return

    def _is_marked(self, mark: str) -> bool:
        return durable_files.path_exists(self._files.told(self._launch, mark))

    def end(self) -> None:
        """Remove the files of the launch."""
        self._files.notice(self._launch).unlink(missing_ok=True)
        for mark in self._waiting:
            self._files.told(self._launch, mark).unlink(missing_ok=True)
