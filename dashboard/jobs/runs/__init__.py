"""Runs of Evaluate that put several rankings together."""
