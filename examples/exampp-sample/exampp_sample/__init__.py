"""A package that adds one grader, prompt, format and measure to exampp."""
