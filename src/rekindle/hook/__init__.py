"""The hook program, the only code that a tool call waits for: append one record, answer, exit.

    python -I -S hook-HASH.pyc HARNESS EVENT[:SOURCE] [AGENT_FOLDER]

`system.files.hook_program` joins this package's modules into one program, in the order given by
`PARTS`. To start as fast as Python itself, they import nothing else from Rekindle, and neither re
nor json. Event and source come from the command line, which Rekindle wrote, never from the
untrusted payload. The payload is written to the inbox as a single unparsed line and parsed later.

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
"""The program's modules, each listed after the modules that it imports."""
