"""Grading by workers elsewhere: batches go out, replies come back, and workers come and go."""
