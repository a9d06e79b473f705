"""Evaluation: metrics, S and OF criteria, one predictor evaluated, methods compared."""
