"""Ways to rank sentences for a query: exact vector search, and the baselines beside it."""
