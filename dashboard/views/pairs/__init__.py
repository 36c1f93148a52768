"""Pairs: a cross-encoder reads two texts together; re-ranking, and ranking learnt from [CLS] vectors."""
