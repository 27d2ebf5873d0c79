"""The hook program, the only code that a tool call waits for: append one record, answer, exit.

    python -I -S hook-HASH.pyc HARNESS EVENT[:SOURCE] [AGENT_FOLDER]

`system.files.hook_program` joins the modules of this package, in the order of `PARTS`, into one
program. They import nothing else from Rekindle, and neither re nor json, so that the program starts
as fast as Python itself. Event and source come from the command line, which Rekindle wrote, and
never from the payload, which is untrusted. The payload is written to the inbox unparsed, on one
line; the fold parses it.

The agent must never notice a failure, so the exit code is always 0.
"""

PARTS = (
    "timeouts",
    "special_events",
    "host_facts",
    "payload",
    "record_writer",
    "session_primer",
    "session_agent",
    "window_usage",
    "session_brake",
    "record_event",
)
"""Modules of the program, each after the ones that it imports."""
