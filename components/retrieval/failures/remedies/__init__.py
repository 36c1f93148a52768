"""What could be done about failed queries, and what each remedy repairs and harms on one's own queries."""

USUAL = ("prompt", "repair", "hybrid", "maxsim", "layer")  # remedies that need no second model
