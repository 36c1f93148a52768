"""Attention: its weights, how they carry information through the blocks, and the rules that heads follow."""
