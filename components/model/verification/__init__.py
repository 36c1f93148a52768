"""Is a model computed here as sentence-transformers computes it? Both embed the same texts, and their vectors are compared.

The library runs in a process of its own, which is given a checked copy of the folder and the texts, and may take a limited
amount of memory and time (`published_copy`, `process`, `reference`); `comparison` says what came of it.
"""
