"""Passes that explain a similarity: what the input contributes to it, by gradients."""
