"""Many sentences at once: vectors of whole corpora, by sentence or by token."""
