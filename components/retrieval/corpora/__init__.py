"""The sentences that are searched: what a corpus is, and how it is read."""
