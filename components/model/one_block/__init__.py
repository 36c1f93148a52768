"""Parts of a pass that are computed on request, where all blocks and heads together would be too much or are seldom needed."""
