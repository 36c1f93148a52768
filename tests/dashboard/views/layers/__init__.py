"""Tests of the views of a word and of sentences over the layers."""
