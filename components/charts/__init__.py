"""Figures from plain arrays and labels. Functions return a plotly Figure (or HTML) and never display it."""
