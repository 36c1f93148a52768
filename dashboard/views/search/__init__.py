"""Search: which sentences come closest."""
