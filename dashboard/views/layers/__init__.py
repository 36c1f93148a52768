"""Layers: how a word's vector changes."""
