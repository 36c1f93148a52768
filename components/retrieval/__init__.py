"""Finding sentences again: corpora and their facts, the search over their vectors, and what it is measured against."""
