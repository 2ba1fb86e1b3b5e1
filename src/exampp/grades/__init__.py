"""Selected grades: `Grades` of one grader on one bank, or a `Panel` of several graders."""
