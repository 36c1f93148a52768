"""The Why page: what makes two texts similar, tested by experiment."""
