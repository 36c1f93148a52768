"""Evaluation on queries with several right answers, some more relevant than others."""
