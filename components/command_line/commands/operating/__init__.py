"""Commands of whoever runs a server, writes a website or keeps a large index."""
