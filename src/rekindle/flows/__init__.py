"""What takes several steps in the world."""
