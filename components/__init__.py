"""BERT Internals without the browser: models, analyses and charts, importable from a notebook."""
