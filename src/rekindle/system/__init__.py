"""Access to the operating system: files, processes, terminals, git, clock, host."""
