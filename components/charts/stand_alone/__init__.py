"""Figures and tables as pages of HTML that open without a network."""
