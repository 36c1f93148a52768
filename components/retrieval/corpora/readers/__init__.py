"""File formats: from bytes to tables of text."""
