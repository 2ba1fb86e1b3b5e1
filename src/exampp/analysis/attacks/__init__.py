"""Whether a grader can be gamed: a battery of attacks, circularity, and who knows whom."""
