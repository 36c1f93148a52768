"""Ways to rank sentences for a query: exact vector search, and the rankings by words beside it."""
