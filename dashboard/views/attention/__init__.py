"""Attention: which token attends to which."""
