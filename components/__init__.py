"""BERT Internals without the browser: models, analyses and charts, importable from a notebook."""

# The only place of the version: About, `python -m components --version`, session files and reports read it.
VERSION = "1.0.0"
