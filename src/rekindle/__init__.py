"""Rekindle keeps an AI agent's work alive across its sessions."""

__version__ = "0.1.0"
