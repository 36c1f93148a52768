"""Code that needs transformers alone, and nothing of this project."""
