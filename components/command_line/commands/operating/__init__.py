"""Commands of whoever runs a server or plans a large index."""
