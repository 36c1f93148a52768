"""Search: which sentences come closest to a query."""
