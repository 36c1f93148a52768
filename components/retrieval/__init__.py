"""Finding sentences: corpora, the index of their vectors, exact search, rankings by words, relevance."""
