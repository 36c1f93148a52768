"""Models: which are on offer, how they are loaded, and one record of what a forward pass gives.

This package (with components/training) is the only code that imports transformers.
"""
