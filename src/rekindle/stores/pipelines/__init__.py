"""Store pipeline runs in files."""
