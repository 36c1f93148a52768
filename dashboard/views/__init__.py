"""One file a page; each reads like a table of contents."""
