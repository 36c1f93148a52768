"""What makes two texts similar: splits of a similarity that sum to it, and experiments that test them."""
