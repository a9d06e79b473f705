"""Searches for the label-sets within a threshold: exact, of a mixture, constrained, and the paper's two."""
