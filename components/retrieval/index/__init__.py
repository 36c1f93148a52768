"""The index of a corpus: a folder of vectors, how it is built, and the cache that keeps it."""
