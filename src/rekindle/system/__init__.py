"""The operating system: files, processes, terminals, git, clock, host."""
