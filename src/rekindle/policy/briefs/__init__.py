"""Decide when a brief is due, and compose its requests, its page and its changes of loops."""
