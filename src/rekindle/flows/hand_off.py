"""A session hands its work on: a checkpoint of it is written, for a fresh one to go on with.

Whoever is killed in between begins again: that a session was stopped is in the log, and as long as
no checkpoint stands behind it there, none was written.
"""

import msgspec

from rekindle.documents import checkpoint
from rekindle.documents import event as events
from rekindle.documents.background import list_ended
from rekindle.documents.checkpoint import Part
from rekindle.documents.transcript import Turn
from rekindle.errors import OverBudgetError, RekindleError, StoppedError, StoreError
from rekindle.flows.end_cycle import Ending
from rekindle.flows.session_turns import session_turns
from rekindle.flows.summarize import Made, Summarize, document, noted
from rekindle.flows.world import Agent, HandedOff, World
from rekindle.policy.sessions import Attempt
from rekindle.policy.settings import STOP_SECONDS
from rekindle.summarizers.mechanical import Known


class HandOff:
    def __init__(self, agent: Agent, world: World, ending: Ending) -> None:
        self._agent, self._world, self._ending = agent, world, ending

    def write(self, launch: str, last: Attempt) -> None:
        """Write the checkpoint of the session that was stopped, which is `last` of its launches.

        Only its own turns are read: what was left undone before it stands in the checkpoint that it
        began with, and is carried over.

        Raises:
            OverBudgetError: They are more than a summarizer may be given.
            StoppedError: We are to stop; the next run writes it.
        """
        store, name, began = self._world.store, self._agent.name, self._world.elapsed()
        turns = session_turns(self._agent, self._world, [last.session])
        known = self._ending.known(store.read(name).committed.began.head)
        made, fault = self._made(turns, known)
        seconds = self._world.elapsed() - began
        now = self._world.clock()
        found = checkpoint.parse(document(made, known, name=name, day=now.date()))
        if last.swept:
            state = f"{found.content(Part.CURRENT_STATE)}\n{list_ended(last.swept)}\n\n"
            found = found.with_content(Part.CURRENT_STATE, state)
        by = "summarizer" if made.how == "headless" else "machine"
        with store.writer(name, wait=STOP_SECONDS) as writer:
            writer.fold()
            spent = writer.projection.run.spent_of_run()
            if fault:
                writer.append(events.HandoffFailed(ts=now, launch=launch, words=fault))
            writer.append(noted(made, ts=now, spent=spent, seconds=seconds))
            writer.commit_checkpoint(found, by=by)
            writer.project()
        self._world.tell(HandedOff(made.how, made.words))

    def _made(self, turns: list[Turn], known: Known) -> tuple[Made, str]:
        """The summary, and why its summarizer could not be asked: it is then made without one."""
        try:
            return self._ending.checkpointer().make("checkpoint", turns, known), ""
        except (OverBudgetError, StoppedError, StoreError):
            raise
        except RekindleError as error:
            plain = Summarize(None, cap=0).make("checkpoint", turns, known)
            return msgspec.structs.replace(plain, words=str(error)), str(error)
