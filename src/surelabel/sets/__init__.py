"""Prediction sets: of one text, of many texts, forced predictions, and sets in words."""
