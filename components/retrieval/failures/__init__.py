"""Failed searches: which queries find another text first, what such failures have in common, and edits that mend them."""
