"""Terminals: run a program in a terminal, read its keyboard, open tmux windows."""
