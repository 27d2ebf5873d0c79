"""A session hands its work on: a checkpoint of it is written, for a fresh one to go on with.

Whoever is killed in between begins again: that a session was stopped is in the log, and as long as
no checkpoint stands behind it there, none was written.
"""

import msgspec

from rekindle.documents import checkpoint
from rekindle.documents import event as events
from rekindle.documents.transcript import Turn
from rekindle.flows.end_cycle import Ending
from rekindle.flows.session_turns import session_turns
from rekindle.flows.summarize import document
from rekindle.flows.world import Agent, HandedOff, World
from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import STOP_SECONDS


class HandOff:
    def __init__(self, agent: Agent, world: World, ending: Ending) -> None:
        self._agent, self._world, self._ending = agent, world, ending

    def write(self, last: Attempt) -> None:
        """Write the checkpoint of the session that was stopped.

        Only its own turns are read: what was left undone before it stands in the checkpoint that it
        began with, and is carried over.

        Raises:
            OverBudgetError: They are more than a summarizer may be given.
        """
        store, name, began = self._world.store, self._agent.name, self._world.elapsed()
        turns = self._without_primer(session_turns(self._agent, self._world, [last.session]))
        known = self._ending.known(store.read(name).committed.began.head)
        made = self._ending.checkpointer().make("checkpoint", turns, known)
        seconds = self._world.elapsed() - began
        day = self._world.clock().date()
        found = checkpoint.parse(document(made, known, name=name, day=day))
        by = "summarizer" if made.how == "headless" else "machine"
        with store.writer(name, wait=STOP_SECONDS) as writer:
            writer.fold()
            spent = writer.projection.run.spent_of_run()
            writer.append(
                events.SummaryMade(
                    ts=self._world.clock(),
                    document="checkpoint",
                    how=made.how,
                    words=made.words,
                    turns=len(turns),
                    usd=made.usd,
                    tokens=made.tokens,
                    seconds=seconds,
                    run_usd=spent.usd + made.usd,
                    run_tokens=spent.tokens + made.tokens,
                )
            )
            writer.commit_checkpoint(found, by=by)
            writer.project()
        self._world.tell(HandedOff(made.how, made.words))

    def _without_primer(self, turns: list[Turn]) -> list[Turn]:
        """What a session was asked first is ours: of it, only the task is the person's."""
        if not turns or turns[0].who != "person" or self._agent.stays:
            return turns
        return [msgspec.structs.replace(turns[0], text=self._agent.task), *turns[1:]]
