"""What a session waits for, on screen: the frame of a figure, progress with Stop, and what must be chosen first."""
