"""What the included model gives for texts that come with the dashboard, kept in a file so that nobody waits for it."""
