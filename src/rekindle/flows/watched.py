"""What a process has shown so far."""

from collections import deque

from rekindle.documents.launch import (
    Called,
    Finished,
    Opened,
    Refused,
    RefusedCall,
    Returned,
    Said,
    Seen,
    Telling,
    Usage,
    Used,
)
from rekindle.policy import tokens
from rekindle.thresholds.running import REFUSED_KEPT, TELLING_KEPT


class Watched:
    """What a process has shown so far."""

    def __init__(self) -> None:
        self.opened = ""
        self.billed: bool | None = None
        self.finished: Finished | None = None
        self.refused: Refused | None = None
        self.last: deque[Telling] = deque(maxlen=TELLING_KEPT)
        self.usage: Usage | None = None
        self.read_and_said = 0
        """In tokens, by our own estimate; for who tells nothing else."""
        self.calls: dict[str, float] = {}
        """The tool calls that go on, and since when."""
        self.refused_calls: list[RefusedCall] = []
        """The tool calls that the CLI refused, the first of them."""
        self.told_refused: list[str] = []
        """Those that were reported while it ran, in words."""
        self.transcript_began = 0
        """Size of the transcript of a resumed session when the process began."""
        self._begun: dict[str, Called] = {}
        """The last calls, by their id."""
        self._turn = ""
        self._of_turns: set[str] = set()
        """Those of them whose turn was told of."""
        self._of_earlier_turns: set[str] = set()
        """Those that were open one turn before, if turns are read from the transcript."""

    def take(self, seen: Seen, now: float) -> None:
        if isinstance(seen, Telling):
            self.last.append(seen)
        if isinstance(seen, RefusedCall):
            self._refuse(seen)
            return
        match seen:
            case Opened():
                self.opened = seen.session
                self.billed = seen.billed
            case Called():
                self._begin(seen, now)
            case Returned():
                self.calls.pop(seen.call, None)
            case Said():
                self.read_and_said += tokens.estimate(seen.text)
            case Used():
                self.usage = seen.usage
                self._goes_on(seen.turn)
            case Refused():
                self.refused = seen
            case Finished():
                self.finished = seen
                self.calls.clear()
            case _:
                pass

    def _begin(self, call: Called, now: float) -> None:
        self.calls.setdefault(call.call, now)
        self._begun[call.call] = call
        while len(self._begun) > REFUSED_KEPT:
            del self._begun[next(iter(self._begun))]

    def _refuse(self, refused: RefusedCall) -> None:
        call = self._begun.get(refused.call)
        if not refused.tool and call is not None:
            refused = RefusedCall(call.tool, call.about, call.arguments, call.call)
        is_known = refused.call and refused.call in {one.call for one in self.refused_calls}
        if refused.tool and not is_known and len(self.refused_calls) < REFUSED_KEPT:
            self.refused_calls.append(refused)

    def _goes_on(self, turn: str) -> None:
        """The model has made a turn: it was told how all calls of the turns before had ended.

        Else one whose end was never reported would seem to go on for ever. What was called since
        the last turn may be of this one, which may come in several pieces.
        """
        if not turn or turn != self._turn:
            for call in self._of_turns:
                self.calls.pop(call, None)
        self._turn, self._of_turns = turn, set(self.calls)

    def end_earlier_calls(self) -> None:
        """Close the calls that were open two turns ago: the model has had their results since.

        For turns that are read from the transcript. The stream may be one turn ahead of it, so that
        a call which was open at the last turn may belong to this one.
        """
        for call in self._of_earlier_turns:
            self.calls.pop(call, None)
        self._of_earlier_turns, self._of_turns = self._of_turns, set(self.calls)
