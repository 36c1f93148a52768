"""Map: where tokens lie in the model's space."""
