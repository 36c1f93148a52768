"""One module a family of encoders: where its modules are, and what it is."""
