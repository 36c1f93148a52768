"""Training: what a model learns from, what it is asked for, how the run goes, and what it changed."""
