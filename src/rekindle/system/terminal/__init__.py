"""Terminals: run a program in one, read its keyboard, open tmux windows."""
