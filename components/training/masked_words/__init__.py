"""The included model's masked-LM head: free texts, training of the head with a low-rank change of the encoder, measures."""
