"""Training: objectives, data, the run in a process of its own, and what it changed in a model."""
