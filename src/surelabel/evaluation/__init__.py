"""Predictors measured on texts with known labels: metrics, criteria of efficiency, promises by subgroup, sentences."""
