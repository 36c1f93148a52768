"""The drawing of the whole path, for the view of that name and for Start: its numbers packed, and the browser's component."""
