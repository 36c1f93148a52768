"""What a person takes home or gives to others: a session as a file, and the panel that offers it beside the link."""
