"""One folder a page: page.py is its table of contents, the other files its sections."""
