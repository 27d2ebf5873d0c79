"""Decide the reaction to a process exit: restart, wait, pause or stop."""
