"""What a second look at the first hits changes and costs over all queries of a collection."""
