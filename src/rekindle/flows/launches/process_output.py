"""Collect what a process has printed so far."""

from collections import deque

from rekindle.documents.launches.launch_types import (
    AssistantText,
    FinalReport,
    LimitReport,
    OutputItem,
    RefusedCall,
    SessionOpened,
    SpokenItem,
    ToolCallFinished,
    ToolCallStarted,
    UsageReport,
    WindowUsage,
)
from rekindle.policy.text import token_estimate
from rekindle.thresholds.supervision import REFUSED_KEPT, TELLING_KEPT


class ProcessOutput:
    """Everything that a process has reported in its output so far."""

    def __init__(self) -> None:
        self.opened = ""
        self.billed: bool | None = None
        self.finished: FinalReport | None = None
        self.refused: LimitReport | None = None
        self.last: deque[SpokenItem] = deque(maxlen=TELLING_KEPT)
        self.usage: WindowUsage | None = None
        self.estimated_tokens = 0
        """Estimated input and output tokens, for programs that do not report usage."""
        self.calls: dict[str, float] = {}
        """Start time of each running tool call, by call id."""
        self.refused_calls: list[RefusedCall] = []
        """Tool calls that the CLI refused, up to a maximum number."""
        self.reported_refusals: list[str] = []
        """Descriptions of refused calls that were already reported during the launch."""
        self.transcript_began = 0
        """Size in bytes of a resumed session's transcript when the process started."""
        self._begun: dict[str, ToolCallStarted] = {}
        """Most recent tool calls, by call id."""
        self._turn = ""
        self._turn_calls: set[str] = set()
        """Ids of the running calls that belong to the last reported turn."""
        self._earlier_turn_calls: set[str] = set()
        """Ids of the calls that were running one turn earlier; used only with transcripts."""

    def take(self, seen: OutputItem, now: float) -> None:
        if isinstance(seen, SpokenItem):
            self.last.append(seen)
        if isinstance(seen, RefusedCall):
            self._refuse(seen)
            return
        match seen:
            case SessionOpened():
                self.opened = seen.session
                self.billed = seen.billed
            case ToolCallStarted():
                self._begin_call(seen, now)
            case ToolCallFinished():
                self.calls.pop(seen.call, None)
            case AssistantText():
                self.estimated_tokens += token_estimate.estimate_tokens(seen.text)
            case UsageReport():
                self.usage = seen.usage
                self._begin_turn(seen.turn)
            case LimitReport():
                self.refused = seen
            case FinalReport():
                self.finished = seen
                self.calls.clear()
            case _:
                pass

    def _begin_call(self, call: ToolCallStarted, now: float) -> None:
        self.calls.setdefault(call.call, now)
        self._begun[call.call] = call
        while len(self._begun) > REFUSED_KEPT:
            del self._begun[next(iter(self._begun))]

    def _refuse(self, refused: RefusedCall) -> None:
        call = self._begun.get(refused.call)
        if not refused.tool and call is not None:
            refused = RefusedCall(call.tool, call.about, call.arguments, call.call)
        is_known = refused.call and refused.call in {
            call_before.call for call_before in self.refused_calls
        }
        if refused.tool and not is_known and len(self.refused_calls) < REFUSED_KEPT:
            self.refused_calls.append(refused)

    def _begin_turn(self, turn: str) -> None:
        """Close the calls from earlier turns, because the model already has their results.

        Without this, a call whose end was never reported would appear to run forever. One turn may
        be reported in several parts, so only calls from other turns are closed.
        """
        if not turn or turn != self._turn:
            for call in self._turn_calls:
                self.calls.pop(call, None)
        self._turn, self._turn_calls = turn, set(self.calls)

    def end_earlier_calls(self) -> None:
        """Close the calls that were already running two turns ago.

        This applies to turns read from the transcript. The output stream can be one turn ahead of
        the transcript, so newer calls may belong to the current turn.
        """
        for call in self._earlier_turn_calls:
            self.calls.pop(call, None)
        self._earlier_turn_calls, self._turn_calls = self._turn_calls, set(self.calls)
