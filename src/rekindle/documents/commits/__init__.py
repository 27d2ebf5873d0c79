"""Messages of git commits that Rekindle writes: the audit trail and pushed work."""
