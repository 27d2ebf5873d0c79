"""Events of an agent CLI for which the hook does more than record them."""

PRIMED_EVENTS = frozenset(
    ("SessionStart:startup", "SessionStart:clear", "SessionStart:compact", "BeforeAgent")
)
"""Events at which a session receives the state of the work; a CLI has one or the other kind."""
BRAKE_EVENTS = frozenset(("PostToolBatch", "PreToolUse", "BeforeModel"))
"""Events that are used only to stop a session."""
