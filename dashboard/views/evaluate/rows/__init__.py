"""Rows drawn as HTML beside and below figures: what may be the best, and for which queries."""
