"""Documents: frozen types with parse() and render(), without I/O."""
