"""`rekindle pipeline`: run a task as steps and parallel workers."""
