"""Rankings learnt from vectors of queries and documents: the vectors, and the regression on them."""
