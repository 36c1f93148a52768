"""The whole path of a sentence, from its tokens to its vector, step by step."""
