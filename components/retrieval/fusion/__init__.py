"""Several rankings of the same texts put together as one: by words and by vectors."""
