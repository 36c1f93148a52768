"""Evaluation on queries with several correct answers, some more relevant than others."""
