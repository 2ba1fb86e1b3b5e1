"""The gate of an exam as a TOML file."""
