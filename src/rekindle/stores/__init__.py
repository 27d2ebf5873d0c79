"""Store agents' state in files."""
