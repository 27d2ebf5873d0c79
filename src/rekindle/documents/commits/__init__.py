"""Git commit messages for the audit trail and for pushed work."""
