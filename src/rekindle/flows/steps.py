"""What is done for an agent on its host, one step at a time: launch, hand on, end the cycle.

Whether and when, `policy.supervise` says. Who waits in between, or for a person, is above: the
supervisor on a laptop, the engine of a fleet.
"""

from collections.abc import Mapping

from rekindle.documents import event as events
from rekindle.documents.launch import Exit
from rekindle.errors import OverBudgetError, StoppedError
from rekindle.flows.end_cycle import EndCycle, Ending
from rekindle.flows.hand_off import HandOff
from rekindle.flows.run_cycle import RunCycle
from rekindle.flows.until import STOPPED
from rekindle.flows.world import Agent, Handed, World
from rekindle.policy import handoff, loop, sessions
from rekindle.policy.cycle import Fresh, Resume
from rekindle.policy.fold import Projection
from rekindle.policy.refused_end import explain_refusal
from rekindle.policy.restart import Safe, Stop
from rekindle.policy.run import Move, Run
from rekindle.policy.supervise import Limits, decide, tried


class Steps:
    def __init__(
        self, agent: Agent, world: World, ending: Ending | None, last: Exit | None = None
    ) -> None:
        """Without an `ending` neither a relay nor a checkpoint is written."""
        self._agent, self._world = agent, world
        self.cycle = RunCycle(agent, world)
        self.cycle.last = last
        self._ending = EndCycle(agent, world, ending) if ending else None
        self._handoff = HandOff(agent, world, ending) if ending else None
        self._limits = Limits(
            runtime=world.settings.runtime,
            budget=agent.budget,
            threshold=agent.threshold,
            stays=agent.stays,
            checkpoints=ending is not None,
        )

    def decide(self, known: Projection) -> Move:
        return decide(known, self._limits, self._world.clock())

    def launch(self, step: Fresh | Resume, known: Projection) -> None:
        """Start what was decided from what is `known`."""
        self.cycle.launch(self.cycle.open(), step, tried(known))

    def hand_on(self, launches: Mapping[str, sessions.Attempt]) -> Safe | None:
        """Write the checkpoint that a fresh session goes on with; more than may be read halts."""
        try:
            if self._handoff is not None:
                self._handoff.write(*[*launches.items()][-1])
            if words := handoff.too_many(handoff.count(launches.values())):
                self._world.notify("handoffs", words)
        except StoppedError:
            return None  # whoever said so is heard next; the next run writes it
        except OverBudgetError as error:
            return Safe(handoff.WHY, f"{error}; {error.hint}")
        return None

    def enter_safe_mode(self, number: int, move: Safe) -> Run:
        """Record safe mode with its question, and notify the operator."""
        now = self._world.clock()
        entered: list[events.AnyEvent] = [
            events.SafeModeEntered(ts=now, why=move.why, words=move.words)
        ]
        if move.why == handoff.WHY:
            entered.insert(0, events.HandoffHalted(ts=now, cycle=number, words=move.words))
        run = self.cycle.append(*entered).run
        self.cycle.person.notify(move.why)
        return run

    def end(self, number: int) -> tuple[Stop | Safe | None, int]:
        """The cycle is over; what is returned keeps another from being begun.

        And where in the log that was decided: a word that was said behind it was not heeded.

        What follows goes into the log with its end, in one write: between the two, another
        supervisor would begin a cycle that nobody wants.
        """
        ended = events.CycleEnded(ts=self._world.clock(), cycle=number)
        if self._ending is not None:
            try:
                ended = self._ending.end(number)
            except StoppedError:
                return None, 0
            if ended.until == STOPPED:
                return None, 0  # whoever said so is heard next; the cycle stays open
        known = self.cycle.known()
        cap = known.run.cycles.cycles
        then = loop.after(
            known.ended,
            ended,
            since=known.run.heeded,
            done=number - known.run.first,
            cap=self._agent.cycles if cap is None else cap,
            settings=self._world.settings.runtime.stall,
        )
        now = self._world.clock()
        follows: list[events.AnyEvent] = [ended]
        if isinstance(then, Stop):
            follows.append(events.RunEnded(ts=now, outcome=then.why, words=then.words))
        elif isinstance(then, Safe):
            follows.append(events.SafeModeEntered(ts=now, why=then.why, words=then.words))
        self.cycle.append(*follows)
        if self._ending is not None:
            self.cycle.tell_progress()
            refused = explain_refusal(ended)
            self._world.tell(Handed(number, ended.how, ended.verdict, ended.words, refused))
        if isinstance(then, Safe):
            self.cycle.person.notify(then.why)
        return (then if isinstance(then, Stop | Safe) else None), known.seq
