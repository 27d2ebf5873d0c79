"""Compose the primer and deliver it to a new session."""
