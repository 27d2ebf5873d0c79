"""Send signals to the process that holds a lock."""

import signal
from pathlib import Path

from rekindle.system.processes import (
    launch_processes,
    process_api,
)


def signal_holder(process: str, lock: Path, number: signal.Signals) -> bool:
    """Signal `process` if it is running and has `lock` open. Return whether it was signalled.

    Its start time, boot and namespace must match the record, because pids are reused.
    """
    first = process.partition(".")[0]
    if not first.isdecimal():
        return False
    pid = int(first)
    return process_api.here.signal_if(
        pid,
        number,
        lambda: launch_processes.identify(pid) == process and process_api.here.has_open(pid, lock),
    )
