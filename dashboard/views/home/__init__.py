"""Start: a sentence field, what one word of the sentence does, and three ways into the dashboard."""
