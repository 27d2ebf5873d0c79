"""Ask a CLI for its models' context-window sizes without calling a model."""

import time
from collections.abc import Callable
from contextlib import closing

from rekindle.errors import RekindleError
from rekindle.flows.launches.launch_access import fetch_access
from rekindle.flows.launches.sandboxed_start import start_program
from rekindle.flows.supervisor_ports import AgentSpec
from rekindle.policy.settings.runtime_settings import MEASURE_SECONDS
from rekindle.ports import Processes
from rekindle.system.processes import program_search
from rekindle.thresholds.supervision import MEASURE_LINES, MEASURE_TICK_SECONDS


def measure_windows(
    agent: AgentSpec,
    processes: Processes,
    stops: Callable[[], bool] = bool,
    elapsed: Callable[[], float] = time.monotonic,
) -> dict[str, int]:
    """Return each model's window size in tokens. If there are none, handoffs are disabled.

    `processes` must not be attached to a terminal that the user may be working in.
    """
    command = agent.harness.measure(agent.program)
    if command is None:
        return {}
    try:
        child = start_program(
            processes,
            agent,
            command.argv if agent.program else program_search.resolve_command(command.argv),
            prompt=command.asked,
            environment={**agent.environment, **command.environment},
            access=fetch_access(agent, ""),
        )
    except RekindleError:
        return {}  # the next launch will report the reason
    began = elapsed()
    lines: list[bytes] = []
    with closing(child.follow(MEASURE_TICK_SECONDS)) as output:
        for line in output:
            if line is not None and len(lines) < MEASURE_LINES:
                lines.append(line)
            if stops() or elapsed() - began > MEASURE_SECONDS:
                break  # closing the stream ends the CLI and everything that it started
    return agent.harness.parse_window_sizes(lines)
