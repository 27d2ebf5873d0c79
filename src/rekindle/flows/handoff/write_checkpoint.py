"""Write a checkpoint of a stopped session for the next session to continue from.

The log records each stop. Until a checkpoint follows the stop in the log, it counts as missing and
is written again. A crash therefore costs only some repeated work.
"""

import msgspec

from rekindle.documents import checkpoint, events
from rekindle.documents.checkpoint import CheckpointSection
from rekindle.documents.launches.background_record import render_ended_list
from rekindle.documents.transcripts.turns import Turn
from rekindle.errors import OverBudgetError, RekindleError, StoppedError, StoreError
from rekindle.flows.cycles.close_cycle import CycleEndPorts
from rekindle.flows.supervisor_ports import AgentSpec, HandoffReport, SupervisorPorts
from rekindle.flows.transcripts.session_turns import read_session_turns
from rekindle.flows.transcripts.summarize_turns import (
    Summarizer,
    SummaryResult,
    make_summary_event,
    render_document,
)
from rekindle.policy.projection.sessions import LaunchRecord
from rekindle.policy.settings.runtime_settings import STOP_SECONDS
from rekindle.summarizers.mechanical_summary import KnownWork


class CheckpointWriter:
    def __init__(self, agent: AgentSpec, world: SupervisorPorts, ending: CycleEndPorts) -> None:
        self._agent, self._ports, self._ending = agent, world, ending

    def write(self, launch: str, last: LaunchRecord) -> None:
        """Write a checkpoint for the stopped session. `last` is the session's last launch.

        Only the session's own turns are read. Earlier unfinished work is carried over from the
        checkpoint that the session started from.

        Raises:
            OverBudgetError: The turns exceed the summarizer's input cap.
            StoppedError: The supervisor was stopped. The next run writes the checkpoint.
        """
        store, name, began = self._ports.store, self._agent.name, self._ports.elapsed()
        turns = read_session_turns(self._agent, self._ports, [last.session])
        known = self._ending.known(store.read(name).committed.began.head)
        result, failure = self._make_summary(turns, known)
        seconds = self._ports.elapsed() - began
        now = self._ports.clock()
        document = checkpoint.parse(render_document(result, known, name=name, day=now.date()))
        if last.swept:
            current = document.content(CheckpointSection.CURRENT_STATE)
            state = f"{current}\n{render_ended_list(last.swept)}\n\n"
            document = document.with_content(CheckpointSection.CURRENT_STATE, state)
        by = "summarizer" if result.how == "headless" else "machine"
        with store.writer(name, wait=STOP_SECONDS) as writer:
            writer.fold()
            spent = writer.projection.run.run_spending()
            if failure:
                writer.append(events.HandoffFailed(ts=now, launch=launch, words=failure))
            writer.append(make_summary_event(result, ts=now, spent=spent, seconds=seconds))
            writer.commit_checkpoint(document, by=by)
            writer.project()
        self._ports.tell(HandoffReport(result.how, result.words))

    def _make_summary(self, turns: list[Turn], known: KnownWork) -> tuple[SummaryResult, str]:
        """Return the summary, and the summarizer's error if no model could write it."""
        try:
            return self._ending.checkpointer().make("checkpoint", turns, known), ""
        except (OverBudgetError, StoppedError, StoreError):
            raise
        except RekindleError as error:
            plain = Summarizer(None, cap=0).make("checkpoint", turns, known)
            return msgspec.structs.replace(plain, words=str(error)), str(error)
