"""Keep one agent running, and restart missing supervisors."""
