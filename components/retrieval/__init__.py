"""Finding sentences: corpora, the index of their vectors, exact search, lexical baselines, relevance."""
