"""One file a format: text to records and back. Errors say file, line and field."""
