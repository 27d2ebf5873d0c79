"""Read, open and resolve an agent's loops."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from rekindle.api.agent_store import read_known
from rekindle.documents.events import LoopAdded, LoopResolved
from rekindle.documents.state import OpenLoop, Resolution
from rekindle.policy.projection import open_loops as policy
from rekindle.policy.projection.proposals import find_claim
from rekindle.system import clock

if TYPE_CHECKING:
    from rekindle.api.home import Home


class LoopChange(NamedTuple):
    """The result of a change to a loop."""

    loop: str
    outcome: Literal["opened", "reworded", "reopened", "resolved", "unchanged"]
    is_recorded: bool
    """Whether the change is in the log. Otherwise, the agent's supervisor will add it."""


class AgentLoops:
    """An agent's open loops, and those that were resolved recently."""

    def __init__(self, home: "Home", agent: str) -> None:
        self._home, self._agent = home, agent

    def list(self) -> Sequence[OpenLoop]:
        """Return the open loops, oldest first."""
        known = read_known(self._home.store, self._agent)
        limits = self._home.project.settings.runtime.loops
        return policy.list_open_loops(known.loops, clock.read_clock(), limits)

    def resolved(self) -> Sequence[Resolution]:
        """Return the recently resolved loops."""
        known = read_known(self._home.store, self._agent)
        limits = self._home.project.settings.runtime.loops
        return policy.list_recently_resolved(known.loops, clock.read_clock(), limits)

    def history(self, loop: str) -> policy.Loop:
        """Return when a loop was opened and resolved.

        Raises:
            NotFoundError: There is no such loop.
        """
        return policy.require_loop(read_known(self._home.store, self._agent).loops, loop)

    def claim(self, loop: str) -> str:
        """Return why the agent proposes to resolve an open loop, or "" if it does not."""
        known = read_known(self._home.store, self._agent)
        claim = find_claim(known.proposals, policy.require_loop(known.loops, loop))
        return claim.text if claim else ""

    def open(self, loop: str, text: str, *, take_over: bool = False) -> LoopChange:
        """Open a loop. If it exists, change its text or reopen it."""
        store = self._home.store
        store.adopt_edits(self._agent)
        loop, text = store.redaction.identity(loop), store.redaction.text(text)
        before = read_known(store, self._agent).loops
        event = policy.propose_loop(before, loop, text, clock.read_clock())
        known = before.get(loop)
        did: Literal["opened", "reworded", "reopened"] = (
            "opened" if known is None else "reworded" if known.is_open else "reopened"
        )
        return self._submit(loop, event, did, take_over=take_over)

    def resolve(self, loop: str, reason: str, *, take_over: bool = False) -> LoopChange:
        """Resolve a loop and record the reason. Resolving it again has no effect."""
        store = self._home.store
        store.adopt_edits(self._agent)
        loop, reason = store.redaction.identity(loop), store.redaction.text(reason)
        before = read_known(store, self._agent).loops
        event = policy.resolve_loop(before, loop, reason, clock.read_clock())
        return self._submit(loop, event, "resolved", take_over=take_over)

    def _submit(
        self,
        loop: str,
        event: LoopAdded | LoopResolved | None,
        did: Literal["opened", "reworded", "reopened", "resolved"],
        *,
        take_over: bool,
    ) -> LoopChange:
        if event is None:
            return LoopChange(loop, "unchanged", is_recorded=True)
        is_recorded = self._home.store.submit(self._agent, event, take_over=take_over)
        return LoopChange(loop, did, is_recorded)
