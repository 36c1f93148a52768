"""Engines that find the nearest vectors, behind one contract: exact, or faster and smaller at the price of some hits."""
