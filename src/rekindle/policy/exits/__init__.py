"""Decide how to react when a process exits: restart, wait, pause or stop."""
