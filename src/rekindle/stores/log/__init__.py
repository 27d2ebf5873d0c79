"""The log with its seal, snapshot and inbox, and a view of it for readers."""
