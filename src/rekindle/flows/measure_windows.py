"""How large a CLI's window is, asked of the CLI itself, without its model."""

import time
from collections.abc import Callable
from contextlib import closing

from rekindle.errors import RekindleError
from rekindle.flows.world import Agent
from rekindle.policy.settings import MEASURE_SECONDS
from rekindle.ports import Processes
from rekindle.system import programs
from rekindle.thresholds.running import MEASURE_LINES, MEASURE_TICK_SECONDS


def measure_windows(
    agent: Agent,
    processes: Processes,
    stops: Callable[[], bool] = bool,
    elapsed: Callable[[], float] = time.monotonic,
) -> dict[str, int]:
    """The windows by their models; nothing, where it does not say: then nothing is handed off.

    `processes` are no terminal's: it is asked beside whatever a person looks at.
    """
    command = agent.harness.measure(agent.program)
    if command is None:
        return {}
    try:
        child = processes.start(
            command.argv if agent.program else programs.resolve(command.argv),
            prompt=command.asked,
            environment={**agent.environment, **command.environment},
            folder=agent.folder,
        )
    except RekindleError:
        return {}  # whoever starts it next says why
    began = elapsed()
    lines: list[bytes] = []
    with closing(child.follow(MEASURE_TICK_SECONDS)) as said:
        for line in said:
            if line is not None and len(lines) < MEASURE_LINES:
                lines.append(line)
            if stops() or elapsed() - began > MEASURE_SECONDS:
                break  # closed, it is ended with all that it started
    return agent.harness.measured(lines)
