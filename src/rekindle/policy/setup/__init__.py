"""Decisions while a project is set up: permissions, environment, folders, `until:`."""
