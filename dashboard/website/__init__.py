"""Views without a browser: as a website of static files with their stored numbers, and one view's numbers for a command."""
