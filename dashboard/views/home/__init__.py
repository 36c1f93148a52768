"""Home: what this is, and a way into every page."""
