"""One analysis per file, from a Trace or its arrays to a small frozen result; charts are elsewhere."""
