"""What a session waits for: requested here, and drawn by dashboard/ui/waiting."""
