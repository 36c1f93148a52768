"""Which pages, views and settings there are, as data that draws nothing, and where each view stands."""
