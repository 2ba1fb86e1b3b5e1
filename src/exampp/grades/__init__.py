"""What graders said, chosen once: `Grades` of one grader on one bank, a `Panel` of several."""
