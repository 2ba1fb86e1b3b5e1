"""One module per file format: reader, writer and detection. Errors give file, line and field."""
