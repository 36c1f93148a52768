"""Whether a model knows the language of a text."""
