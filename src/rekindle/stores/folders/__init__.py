"""Paths of an agent's files, in the project and in the user's folder."""
