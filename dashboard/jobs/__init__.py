"""What a session waits for, and how its progress is drawn."""
