"""How good a ranking is: pairs, sentence similarity, measures, and runs as records."""
