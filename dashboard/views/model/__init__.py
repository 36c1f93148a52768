"""Model: what is inside the model."""
