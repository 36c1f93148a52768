"""Tests of Start."""
