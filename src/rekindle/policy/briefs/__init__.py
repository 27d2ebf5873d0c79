"""What a brief says, when it is due, and what it changes."""
