"""Tokens: how text becomes numbers."""
