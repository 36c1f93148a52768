"""Figures of retrieval: how runs compare, what re-ranking changes, and what both cost."""
