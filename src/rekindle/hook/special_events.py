"""Events that the hook acts on instead of only recording them."""

PRIMED_EVENTS = frozenset(
    ("SessionStart:startup", "SessionStart:clear", "SessionStart:compact", "BeforeAgent")
)
"""Events at which a session receives the state of the work. Each CLI has one of them."""
BRAKE_EVENTS = frozenset(("PostToolBatch", "PreToolUse", "BeforeModel"))
"""Events that are used only to stop a session."""
