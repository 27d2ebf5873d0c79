"""The state computed from the log: sessions, open loops, the run."""
