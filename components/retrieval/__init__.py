"""Finding sentences: corpora, indexes of their vectors, exact search, word rankings, and evaluation."""
