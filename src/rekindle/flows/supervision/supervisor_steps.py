"""Perform an agent's steps on its host: launch, hand off, end the cycle.

`policy.supervision.next_move` chooses the step. Waiting is up to the caller, which is the
supervisor on a laptop or the engine in a fleet.
"""

from collections.abc import Mapping

from rekindle.documents import events
from rekindle.documents.launches.launch_types import LaunchExit
from rekindle.errors import OverBudgetError, StoppedError
from rekindle.flows.cycles.agent_log import AgentLog
from rekindle.flows.cycles.close_cycle import CycleCloser, CycleEndPorts
from rekindle.flows.cycles.cycle_runner import CycleRunner
from rekindle.flows.handoff.write_checkpoint import CheckpointWriter
from rekindle.flows.launches.checked_command import STOPPED
from rekindle.flows.supervisor_ports import AgentSpec, CycleReport, SupervisorPorts
from rekindle.policy.exits.refused_end import explain_refusal
from rekindle.policy.exits.restart import EnterSafeMode, StopRun
from rekindle.policy.exits.session_choice import ResumeSession, StartFresh
from rekindle.policy.handoff import window_rule
from rekindle.policy.operator import questions
from rekindle.policy.projection import sessions
from rekindle.policy.projection.projection import Projection
from rekindle.policy.routes.choose_route import RouteChoice
from rekindle.policy.stall import stall_response
from rekindle.policy.supervision.next_move import (
    AgentLimits,
    choose_agent_route,
    decide_move,
    find_checkpoint,
    is_quota_lifted,
    select_open_launches,
)
from rekindle.policy.supervision.run_moves import Move, RunState


class SupervisorSteps:
    def __init__(
        self,
        agent: AgentSpec,
        world: SupervisorPorts,
        ending: CycleEndPorts | None,
        last: LaunchExit | None = None,
    ) -> None:
        """Create the steps. Without `ending`, no relays or checkpoints are written."""
        self._agent, self._ports = agent, world
        self.log = AgentLog(agent, world)
        self.cycle = CycleRunner(agent, world, self.log)
        self.cycle.last = last
        self._ending = CycleCloser(agent, world, ending) if ending else None
        self._handoff = CheckpointWriter(agent, world, ending) if ending else None
        self._limits = AgentLimits(
            runtime=world.settings.runtime,
            budget=agent.budget,
            threshold=agent.threshold,
            stays=agent.stays,
            checkpoints=ending is not None,
            routes=agent.routes,
            carries=agent.harness.CAN.carries_sessions,
        )

    def choose_route(self, projection: Projection) -> RouteChoice | None:
        """Return the route for the next launch, or None if the agent has only one."""
        routes = self._limits.routes if len(self._limits.routes) > 1 else ()
        is_lifted = is_quota_lifted(projection)
        holds = {route: None if is_lifted else self._ports.route_hold(route) for route in routes}
        held = {route: hold.until for route, hold in holds.items() if hold is not None}
        return choose_agent_route(projection, self._limits, self._ports.clock(), held)

    def decide(self, projection: Projection, choice: RouteChoice | None = None) -> Move:
        return decide_move(projection, self._limits, self._ports.clock(), choice)

    def launch(
        self, step: StartFresh | ResumeSession, projection: Projection
    ) -> EnterSafeMode | None:
        """Start the launch that was chosen for this projection.

        If the session cannot be carried over to its new account, write a checkpoint instead, unless
        there is one. The next launch starts from it.
        """
        launches = sessions.select_cycle_launches(projection.attempts, projection.current_cycle)
        last = [*launches.values()][-1] if launches else None
        if (
            isinstance(step, ResumeSession)
            and last is not None
            and last.account != self._agent.account
            and self._handoff is not None
            and not self.cycle.can_continue(last)
        ):
            if find_checkpoint(projection) < last.ended_seq:
                return self.hand_off_session(launches)
            step = StartFresh(recovery=False, why="its session cannot be carried over")
        self.cycle.launch(self.cycle.open(), step, select_open_launches(projection))
        return None

    def hand_off_session(
        self, launches: Mapping[str, sessions.LaunchRecord]
    ) -> EnterSafeMode | None:
        """Write the checkpoint. Return safe mode if the session is too large to summarize."""
        try:
            if self._handoff is not None:
                number = self.log.known().current_cycle
                self.cycle.snapshots.begin(number, "handoff")
                try:
                    self._handoff.write(*[*launches.items()][-1])
                finally:
                    self.cycle.snapshots.finish()
            if words := window_rule.describe_too_many(
                window_rule.count_handoffs(launches.values())
            ):
                self._ports.notify("handoffs", words)
        except StoppedError:
            return None  # the next run will write the checkpoint
        except OverBudgetError as error:
            return EnterSafeMode(window_rule.HANDOFF_REASON, f"{error}; {error.hint}")
        return None

    def enter_safe_mode(self, number: int, move: EnterSafeMode) -> RunState:
        """Record safe mode and its question, and notify the operator."""
        now = self._ports.clock()
        entered: list[events.AnyEvent] = [
            events.SafeModeEntered(ts=now, why=move.why, words=move.words)
        ]
        if move.why == window_rule.HANDOFF_REASON:
            entered.insert(0, events.HandoffHalted(ts=now, cycle=number, words=move.words))
        projection = self.log.append(*entered)
        if not questions.is_asked_again(projection, move.why):
            self.log.person.notify(move.why)
        return projection.run

    def end(self, number: int) -> tuple[StopRun | EnterSafeMode | None, int]:
        """End the cycle. Return why the run must not start another cycle, or None.

        The second value is the log position at which this was decided. Commands after it have not
        been considered yet. The end of the cycle and its consequence are appended in one write, so
        that no other supervisor starts a cycle between them.
        """
        ended = events.CycleEnded(ts=self._ports.clock(), cycle=number)
        if self._ending is not None:
            try:
                ended = self._ending.end(number)
            except StoppedError:
                return None, 0
            if ended.until == STOPPED:
                return None, 0  # the cycle stays open
        self.cycle.snapshots.take(number, "end")
        projection = self.log.known()
        cap = projection.run.cycles.cycles
        consequence = stall_response.decide_after_cycle(
            projection.ended,
            ended,
            since=projection.run.intervened,
            done=number - projection.run.first,
            cap=self._agent.cycles if cap is None else cap,
            settings=self._ports.settings.runtime.stall,
            has_messages=bool(projection.waiting_messages),
        )
        now = self._ports.clock()
        follows: list[events.AnyEvent] = [ended]
        if isinstance(consequence, StopRun):
            follows.append(events.RunEnded(ts=now, why=consequence.why, words=consequence.words))
        elif isinstance(consequence, EnterSafeMode):
            follows.append(
                events.SafeModeEntered(ts=now, why=consequence.why, words=consequence.words)
            )
        self.log.append(*follows)
        if self._ending is not None:
            self.cycle.write_progress_file()
            refused = explain_refusal(ended)
            self._ports.tell(CycleReport(number, ended.how, ended.verdict, ended.words, refused))
        if isinstance(consequence, EnterSafeMode):
            self.log.person.notify(consequence.why)
        return (
            consequence if isinstance(consequence, StopRun | EnterSafeMode) else None
        ), projection.seq
