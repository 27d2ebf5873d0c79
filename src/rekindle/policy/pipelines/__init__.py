"""Pipelines: whether their steps fit together, and which step runs next."""
