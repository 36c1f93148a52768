"""What makes two texts similar, tested by experiment."""
