"""Evaluate: which model, layer and pooling retrieve best."""
