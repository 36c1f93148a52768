"""Passes whose inner states are recorded, or replaced, and passes in which a token sees only those before it."""
