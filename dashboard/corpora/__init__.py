"""The session's corpus: which one it is, choosing another, and uploads."""
