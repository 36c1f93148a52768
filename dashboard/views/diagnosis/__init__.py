"""Diagnosis: what failed queries share, and what each remedy repairs and harms."""
