"""Decide when a brief is due, build its requests and its page, and update the open loops."""
