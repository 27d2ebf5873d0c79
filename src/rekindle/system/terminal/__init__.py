"""Run programs in terminals, read the keyboard, and open tmux windows."""
