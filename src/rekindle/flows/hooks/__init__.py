"""Install, check and export an agent CLI's hooks."""
