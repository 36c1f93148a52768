"""The words of a text: as a person typed them, in their other forms, and those that carry little meaning."""
