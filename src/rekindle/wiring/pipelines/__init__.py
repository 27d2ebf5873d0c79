"""Start pipeline runs, their workers and their coordinators."""
