"""Tests of components/model/verification."""
