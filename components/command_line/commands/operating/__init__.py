"""Commands of whoever runs a server or keeps a large index."""
