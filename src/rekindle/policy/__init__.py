"""Pure decisions: functions that turn facts, settings and the current time into a verdict."""
