"""What can be said of a word at first sight: where it looks, how it changes through the layers, and its nearest words."""
