"""BERT Internals without the browser: models, analyses and charts, importable from a notebook."""

VERSION = "0.9.0"  # shown on the About page
