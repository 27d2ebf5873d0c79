"""An agent's state, computed from its log: sessions, open loops and the run."""
