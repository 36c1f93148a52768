"""Search's views of all of a corpus: which of its sentences say nearly the same, and what it contains."""
