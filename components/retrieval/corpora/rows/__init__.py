"""Rows of texts that belong together: which column is what, which scores are numbers, and what became of every row."""
