"""Ways to rank sentences for a query: exact vector search, word rankings and static vectors."""
