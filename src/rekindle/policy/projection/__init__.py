"""The state of an agent, computed from its log: sessions, open loops and the run."""
