"""A whole exam as one TOML file, done like make does it."""
