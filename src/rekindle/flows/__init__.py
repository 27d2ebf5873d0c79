"""What happens, top to bottom."""
