"""Count the turns in the transcripts of a session and its subagents.

Some CLIs report no turns in their output, or report a turn before the model has finished writing.
"""

import msgspec

from rekindle.documents.launches.launch_types import UsageReport
from rekindle.documents.transcripts.turns import SubagentTranscripts
from rekindle.flows.launches.process_output import ProcessOutput
from rekindle.flows.launches.quota_watch import QuotaWatch
from rekindle.flows.launches.spend_meter import SpendMeter
from rekindle.flows.supervisor_ports import AgentSpec
from rekindle.flows.transcripts import transcript_files
from rekindle.flows.transcripts.archive_transcripts import list_subagent_files


class TranscriptTurns:
    def __init__(
        self, agent: AgentSpec, watched: ProcessOutput, meter: SpendMeter, quota: QuotaWatch
    ) -> None:
        self._agent, self._watched, self._meter = agent, watched, meter
        self._quota = quota
        self._offsets: dict[str, int] = {}
        """Offset in bytes up to which each transcript has been counted."""
        self._foreign: set[str] = set()
        """Files that are not transcripts of this session's subagents."""

    def skip_existing(self, transcript: str, session: str) -> None:
        """Skip the turns of a resumed session that earlier launches have counted."""
        size = transcript_files.read_size(transcript) if transcript else 0
        self._offsets[transcript] = self._watched.transcript_began = size
        for path, _ in self._list_subagents(transcript, session):
            self._offsets[path] = transcript_files.read_size(path)

    def count(self, transcript: str) -> None:
        """Count new turns in the session's own transcript."""
        if transcript and self._count_file(transcript) and self._watched.usage is None:
            self._watched.end_earlier_calls()

    def count_subagents(self, transcript: str, session: str) -> None:
        """Count new turns in the transcripts of the session's subagents."""
        for path, asides in self._list_subagents(transcript, session):
            if path not in self._offsets and asides.begins is not None:
                # The file starts with a copy of the session's transcript, which does not count.
                beginning = transcript_files.read_lines_since(path, 0)
                mark = asides.begins(beginning.partition(b"\n")[0])
                if (start := beginning.find(mark)) < 0:
                    continue
                self._offsets[path] = beginning.rfind(b"\n", 0, start) + 1
            self._count_file(path)

    def _list_subagents(
        self, transcript: str, session: str
    ) -> list[tuple[str, SubagentTranscripts]]:
        if not transcript or not session:
            return []
        asides = self._agent.harness.asides(transcript, session)
        found = []
        for path in list_subagent_files(asides) if asides else ():
            if path == transcript or path in self._foreign or asides is None:
                continue
            line = transcript_files.read_first_line(path)
            if asides.sign in line:
                found.append((path, asides))
            elif line:
                self._foreign.add(path)
        return found

    def _count_file(self, path: str) -> bool:
        """Count the new turns in a transcript, and return whether there are any."""
        offset = self._offsets.get(path, 0)
        if transcript_files.read_size(path) <= offset:
            return False
        new_lines = transcript_files.read_lines_since(path, offset)
        self._offsets[path] = offset + len(new_lines)
        lines = new_lines.splitlines()
        self._quota.take_lines(lines)
        turns = [used for line in lines if (used := self._agent.harness.turn(line))]
        if not turns:
            return False
        # A turn's line does not always contain the model's name.
        last = self._agent.harness.usage(transcript_files.read_tail(path), {})
        for used in turns:
            model = used.usage.model or (last.model if last else "")
            usage = msgspec.structs.replace(used.usage, model=model)
            self._meter.take(UsageReport(usage, used.turn))
        return True
