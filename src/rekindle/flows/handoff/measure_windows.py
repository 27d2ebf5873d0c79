"""Ask a CLI for the context-window sizes of its models, without using a model."""

import time
from collections.abc import Callable
from contextlib import closing

from rekindle.errors import RekindleError
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
    """Return window sizes in tokens by model; empty if unknown, which disables handoffs.

    `processes` must not be attached to a terminal, because a person may be using the terminal.
    """
    command = agent.harness.measure(agent.program)
    if command is None:
        return {}
    try:
        child = processes.start(
            command.argv if agent.program else program_search.resolve_command(command.argv),
            prompt=command.asked,
            environment={**agent.environment, **command.environment},
            folder=agent.folder,
        )
    except RekindleError:
        return {}  # the next launch reports the reason
    began = elapsed()
    lines: list[bytes] = []
    with closing(child.follow(MEASURE_TICK_SECONDS)) as output:
        for line in output:
            if line is not None and len(lines) < MEASURE_LINES:
                lines.append(line)
            if stops() or elapsed() - began > MEASURE_SECONDS:
                break  # closing the output ends the CLI and everything it started
    return agent.harness.parse_window_sizes(lines)
