"""Count the turns in a transcript, for CLIs whose output does not report them."""

import msgspec

from rekindle.documents.launches.launch_types import UsageReport
from rekindle.flows.launches.process_output import ProcessOutput
from rekindle.flows.launches.quota_watch import QuotaWatch
from rekindle.flows.launches.spend_meter import SpendMeter
from rekindle.flows.supervisor_ports import AgentSpec
from rekindle.flows.transcripts import transcript_files


class TranscriptTurns:
    def __init__(
        self, agent: AgentSpec, watched: ProcessOutput, meter: SpendMeter, quota: QuotaWatch
    ) -> None:
        self._agent, self._watched, self._meter = agent, watched, meter
        self._quota = quota
        self._offset = 0
        """Offset in bytes up to which the transcript has been counted."""

    def skip_existing(self, transcript: str) -> None:
        """Skip the turns of a resumed session that earlier launches have counted."""
        self._offset = transcript_files.read_size(transcript) if transcript else 0
        self._watched.transcript_began = self._offset

    def count(self, transcript: str) -> None:
        """Count new turns in the transcript, unless the output stream reports them."""
        if self._watched.usage is not None or not transcript:
            return
        if transcript_files.read_size(transcript) <= self._offset:
            return
        new_lines = transcript_files.read_lines_since(transcript, self._offset)
        self._offset += len(new_lines)
        lines = new_lines.splitlines()
        self._quota.take_lines(lines)
        turns = [used for line in lines if (used := self._agent.harness.turn(line))]
        if not turns:
            return
        self._watched.end_earlier_calls()
        # A turn's line does not always contain the model's name.
        last = self._agent.harness.usage(transcript_files.read_tail(transcript), {})
        for used in turns:
            model = used.usage.model or (last.model if last else "")
            usage = msgspec.structs.replace(used.usage, model=model)
            self._meter.take(UsageReport(usage, used.turn))
