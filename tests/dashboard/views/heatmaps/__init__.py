"""What the heatmaps say about their numbers."""
