"""The page of all lessons."""
