"""Check that the steps of a pipeline fit together, and decide which step runs next."""
