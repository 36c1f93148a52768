"""Figures about runs that put words and vectors together."""
