"""Map: where tokens lie."""
