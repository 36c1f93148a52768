"""Passes whose inner states are recorded at every place where one can be replaced, and passes in which some are."""
