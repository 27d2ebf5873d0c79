"""Documents: frozen types with parse() and render(), which use no clock, files or network."""
