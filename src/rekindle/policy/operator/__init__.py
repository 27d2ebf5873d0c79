"""What the operator sees and decides: rows, notifications, questions."""
