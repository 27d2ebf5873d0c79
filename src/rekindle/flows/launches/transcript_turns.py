"""Count the turns of a launch from its transcript, if the CLI's output does not report them."""

import msgspec

from rekindle.documents.launches.launch_types import UsageReport
from rekindle.flows.launches.process_output import ProcessOutput
from rekindle.flows.launches.spend_meter import SpendMeter
from rekindle.flows.supervisor_ports import AgentSpec
from rekindle.flows.transcripts import transcript_files


class TranscriptTurns:
    def __init__(self, agent: AgentSpec, watched: ProcessOutput, meter: SpendMeter) -> None:
        self._agent, self._watched, self._meter = agent, watched, meter
        self._offset = 0
        """Offset in the transcript, in bytes, up to which turns have been counted."""

    def skip_existing(self, transcript: str) -> None:
        """Skip the turns of a resumed session that were counted in earlier launches."""
        self._offset = transcript_files.read_size(transcript) if transcript else 0
        self._watched.transcript_began = self._offset

    def count(self, transcript: str) -> None:
        """Count the new turns in the transcript if the output stream does not report them."""
        if self._watched.usage is not None or not transcript:
            return
        if transcript_files.read_size(transcript) <= self._offset:
            return
        new_lines = transcript_files.read_lines_since(transcript, self._offset)
        self._offset += len(new_lines)
        turns = [
            used for line in new_lines.splitlines() if (used := self._agent.harness.turn(line))
        ]
        if not turns:
            return
        self._watched.end_earlier_calls()
        # The line with a turn may not name the model.
        last = self._agent.harness.usage(transcript_files.read_tail(transcript), {})
        for used in turns:
            model = used.usage.model or (last.model if last else "")
            usage = msgspec.structs.replace(used.usage, model=model)
            self._meter.take(UsageReport(usage, used.turn))
