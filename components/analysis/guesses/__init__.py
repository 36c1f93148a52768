"""What guesses in many sentences say together."""
