"""Guarantees beyond the plain one, and watching whether its assumption holds."""
