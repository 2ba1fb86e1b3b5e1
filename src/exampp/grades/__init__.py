"""Grades selected once: `Grades` of one grader on one bank, a `Panel` of several graders."""
