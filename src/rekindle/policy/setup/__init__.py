"""Decide how to set up a project: permissions, environment, folders, `until:` and adoption."""
