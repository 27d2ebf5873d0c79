"""Report a launch's output as it arrives, with secrets redacted and refused calls left out."""

import msgspec

from rekindle.documents.launches.launch_types import (
    AssistantText,
    FinalReport,
    OutputItem,
    RefusedCall,
    ToolCallFinished,
    ToolCallStarted,
    WarningReport,
)
from rekindle.flows.launches.process_output import ProcessOutput
from rekindle.flows.supervisor_ports import AgentSpec, RefusedCallReport, SupervisorPorts
from rekindle.formats.identifiers import to_one_line
from rekindle.thresholds.supervision import CALL_HELD_SECONDS
from rekindle.thresholds.texts import ABOUT_CHARACTERS


class OutputReporter:
    """Reports one launch's output to the terminal and the supervisor's log."""

    def __init__(self, agent: AgentSpec, world: SupervisorPorts, watched: ProcessOutput) -> None:
        self._agent, self._ports, self._watched = agent, world, watched
        self._calls: dict[str, ToolCallStarted] = {}
        """Tool calls that have started but have not been reported yet."""
        self._called_at = 0.0
        self._refused: set[str] = set()

    def report(self, item: OutputItem) -> None:
        """Report an item of output.

        A tool call is held back briefly, because the CLI may still refuse it. Refusals arrive
        immediately, so a call that takes longer can be reported while it is still running.
        """
        seen = self._redact(item)
        match seen:
            case ToolCallStarted():
                self._calls[seen.call] = seen
                self._called_at = self._ports.elapsed()
                return
            case ToolCallFinished():
                if seen.refused:
                    self._refused.add(seen.call)
                elif call := self._calls.pop(seen.call, None):
                    self._ports.tell(call)
            case RefusedCall():
                if call := self._calls.pop(seen.call, None):
                    words = f"{call.tool} {call.about}"
                    self._watched.reported_refusals.append(words)
                    self._ports.tell(RefusedCallReport(words))
                return  # refusals of other calls are reported when the launch ends
            case AssistantText() | WarningReport() | FinalReport():
                self.report_calls()  # preserve the order of events
            case _:
                pass
        self._ports.tell(seen)

    def report_running_calls(self, now: float) -> None:
        """Report the held calls once it is too late for the CLI to refuse them."""
        if now - self._called_at > CALL_HELD_SECONDS:
            self.report_calls()

    def report_calls(self) -> None:
        """Report the held calls that were not refused."""
        for call in self._calls.values():
            if call.call not in self._refused:
                self._ports.tell(call)
        self._calls.clear()

    def _redact(self, seen: OutputItem) -> OutputItem:
        """Redact secrets, because reports are displayed and written to logs."""
        redacted = self._ports.store.redaction.text
        match seen:
            case AssistantText() | WarningReport():
                return type(seen)(redacted(seen.text))
            case ToolCallStarted():
                short = seen.about.removeprefix(f"{self._agent.folder}/")
                about = to_one_line(redacted(short), ABOUT_CHARACTERS)
                return msgspec.structs.replace(seen, about=about, arguments={})
            case FinalReport():
                errors = tuple(map(redacted, seen.errors))
                return msgspec.structs.replace(seen, text=redacted(seen.text), errors=errors)
            case _:
                return seen
