"""Documents: frozen types with parse() and render(). Pure: no clock, no files, no network."""
