"""The models that people choose from: all of them, with where their files are and what each can do."""
