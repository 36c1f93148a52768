"""How similar tokens, sentences and layers are, and how similar unrelated ones are."""
