"""Collect the output of a process."""

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
    """The output of a process so far."""

    def __init__(self) -> None:
        self.opened = ""
        self.billed: bool | None = None
        self.finished: FinalReport | None = None
        self.refused: LimitReport | None = None
        self.last: deque[SpokenItem] = deque(maxlen=TELLING_KEPT)
        self.usage: WindowUsage | None = None
        self.estimated_tokens = 0
        """Estimated number of input and output tokens, for a program that reports no usage."""
        self.calls: dict[str, float] = {}
        """Start time of each running tool call, by its id."""
        self.refused_calls: list[RefusedCall] = []
        """The first tool calls that the CLI refused, up to a maximum number."""
        self.reported_refusals: list[str] = []
        """Descriptions of the refused calls that were reported while the process was running."""
        self.transcript_began = 0
        """Size of a resumed session's transcript when the process started, in bytes."""
        self._begun: dict[str, ToolCallStarted] = {}
        """The most recent tool calls, by id."""
        self._turn = ""
        self._turn_calls: set[str] = set()
        """Ids of running calls whose turn was reported."""
        self._earlier_turn_calls: set[str] = set()
        """Ids of calls that were running one turn ago, if turns are read from the transcript."""

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
        """Close the calls of earlier turns, because the model already has their results.

        Otherwise a call whose end was never reported would seem to run forever. Calls since the
        last report may belong to the same turn, because a turn may be reported in several parts.
        """
        if not turn or turn != self._turn:
            for call in self._turn_calls:
                self.calls.pop(call, None)
        self._turn, self._turn_calls = turn, set(self.calls)

    def end_earlier_calls(self) -> None:
        """Close the calls that were running two turns ago, because the model has their results.

        This is for turns read from the transcript. The output stream may be one turn ahead of the
        transcript, so a call that was running at the last turn may belong to the current one.
        """
        for call in self._earlier_turn_calls:
            self.calls.pop(call, None)
        self._earlier_turn_calls, self._turn_calls = self._turn_calls, set(self.calls)
