"""Rankings that are compared with the one by vectors, beyond those of results.py."""
