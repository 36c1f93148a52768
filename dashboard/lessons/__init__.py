"""Lessons on screen: opening a step, the panel beside every page, counted answers, the printed page."""
