"""What the views of the model show."""
