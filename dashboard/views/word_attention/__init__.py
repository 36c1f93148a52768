"""Where one word looks, over all heads."""
