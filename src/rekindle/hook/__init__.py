"""The hook program, which records an event, answers the CLI and exits. Tool calls wait for it.

    python -I -S hook-HASH.pyc HARNESS EVENT[:SOURCE] [AGENT_FOLDER]

`system.files.hook_program` joins this package's modules into one program, in the order of `PARTS`.
The modules import nothing else from Rekindle, and neither re nor json, so the program starts almost
as fast as Python itself. The event and source come from the command line, which Rekindle wrote, and
never from the untrusted payload. The hook writes the payload to the inbox as a single line, without
parsing it.

The exit code is always 0, because the agent must never notice a failure.
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
GATE_PARTS = ("host_facts", "ask_rules", "permission_gate")
"""The modules of the gate, a second program that holds tool calls until a person has decided."""
