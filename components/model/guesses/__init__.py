"""What a masked-LM head guesses: at masks and at every other token, at the last layer and below it."""
