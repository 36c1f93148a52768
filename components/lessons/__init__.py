"""Lessons: how their files are read and checked, the answers that a class gives, and the printed page."""
