"""Tests of what is said of a word at first sight."""
