"""Plugins of Rekindle inside agent CLIs: the CLIs' commands and lists, and copies of settings."""
