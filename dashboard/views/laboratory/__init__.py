"""Laboratory: what stands behind no door, and a search over the questions of all views."""
