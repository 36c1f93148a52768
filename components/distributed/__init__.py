"""Work on several processes or machines, by Ray."""
