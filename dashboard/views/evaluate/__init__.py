"""Evaluate: which layer and pooling retrieve best."""
