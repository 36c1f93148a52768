"""What a text's vector is made of: what the engine must record or compute for it."""
