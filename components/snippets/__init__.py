"""Code for the figures: short Python programs that give the numbers of a figure, and a page of them as a notebook."""
