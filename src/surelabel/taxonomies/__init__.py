"""Taxonomies: a promise for every kind of text or label-set, each calibrated on its own calibration texts."""
