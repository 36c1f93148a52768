"""Guess the word: what a masked-LM head guesses for hidden words, and what hiding a word changes in any encoder."""
