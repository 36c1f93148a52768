"""Commands of whoever runs a server, writes a website or plans a large index."""
