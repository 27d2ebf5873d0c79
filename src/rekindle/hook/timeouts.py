"""Timeouts for the hook program. They are short, because the agent waits for the hook."""

import os

PATIENCE_SECONDS = 0.15
"""Timeout for a slow disk, in seconds."""
PRIMING_SECONDS = 8.0
"""Timeout for a primer, in seconds. After that, the session starts without the primer."""
BRAKING_SECONDS = 3.0
WRITTEN_SECONDS = 1.0
"""Maximum time, in seconds, that a transcript may lag behind a hook's payload."""
HOLD_SECONDS = 9.0
"""Maximum time to hold a call until the supervisor ends the session, in seconds. It is just below
the CLI's own timeout.
"""


def call_after(seconds: float, then: object) -> None:
    """Call `then` after a timeout, with SIGALRM."""
    import _signal  # type: ignore[import-not-found]  # noqa: PLC0415 - `signal` imports enum, which slows the start

    _signal.signal(_signal.SIGALRM, then)
    _signal.setitimer(_signal.ITIMER_REAL, seconds)


def raise_timeout(*_: object) -> None:
    raise TimeoutError  # an OSError, like other disk failures


def exit_now(*_: object) -> None:
    os._exit(0)
