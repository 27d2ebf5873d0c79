"""Record the context-window sizes of a CLI's models in the agent's log."""

from collections.abc import Mapping

from rekindle.documents import events
from rekindle.flows.cycles.agent_log import AgentLog
from rekindle.flows.supervisor_ports import AgentSpec, SupervisorPorts
from rekindle.policy.projection.projection import Projection


class WindowSizes:
    def __init__(self, agent: AgentSpec, world: SupervisorPorts, log: AgentLog) -> None:
        self._agent, self._ports, self._log = agent, world, log

    def read(self, known: Projection) -> dict[str, int]:
        """Return the known window sizes. If there are none, ask the CLI once.

        The CLI reports the sizes after each launch, which keeps them up to date.
        """
        harness = self._agent.harness
        recorded = known.windows.get(harness.NAME, {})
        if not recorded and self._agent.threshold is not None:
            sizes = self._ports.windows()
            self.record(known, sizes)
            return dict(sizes)
        return {
            model: size.window for model, size in sorted(recorded.items(), key=lambda it: it[1])
        }

    def record(self, known: Projection, sizes: Mapping[str, int]) -> None:
        """Record window sizes that have changed."""
        recorded = known.windows.get(self._agent.harness.NAME, {})
        news = [
            events.WindowSizeReported(
                ts=self._ports.clock(),
                harness=self._agent.harness.NAME,
                model=model,
                window=window,
            )
            for model, window in sizes.items()
            if model not in recorded or recorded[model].window != window
        ]
        if news:
            self._log.append(*news)
