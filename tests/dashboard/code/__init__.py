"""The code of the figures, run as a person would run it."""
