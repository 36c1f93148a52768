"""Figures from plain arrays and labels. Functions return a plotly Figure (or HTML); they never display it."""
