"""My lecture: the figures that a star was given, in an order of one's own."""
