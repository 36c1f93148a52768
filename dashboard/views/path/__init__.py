"""The whole path: one picture from a sentence to its vector, with its real numbers."""
