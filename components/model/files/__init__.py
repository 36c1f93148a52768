"""Where a model's files come from, and what they say about how to use it."""
