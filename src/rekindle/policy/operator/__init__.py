"""The operator's view of an agent: rows of the screens, notifications and questions."""
