"""Heatmaps: what each block does to each token."""
