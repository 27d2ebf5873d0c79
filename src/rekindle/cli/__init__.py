"""The command line: one thin file per noun."""
