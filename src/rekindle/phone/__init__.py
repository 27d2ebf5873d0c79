"""The bridge between agents and phones: one process per user, for all trusted projects."""
