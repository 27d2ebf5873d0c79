"""Decide what a sandboxed agent can see, write and reach."""
