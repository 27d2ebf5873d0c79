"""Pure decisions: functions from facts, settings and the current time to a verdict."""
