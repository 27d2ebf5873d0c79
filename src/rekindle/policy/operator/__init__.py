"""The operator's view of an agent: its row on the screens, notifications and questions."""
