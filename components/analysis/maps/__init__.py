"""Maps of token vectors in two or three dimensions, and how far to trust them."""
