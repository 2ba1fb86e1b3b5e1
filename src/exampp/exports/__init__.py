"""Files that other programs read: stored records, results, and training data."""
