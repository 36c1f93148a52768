"""Figures of what makes two texts similar."""
