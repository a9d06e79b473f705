"""Shared utilities: validation, atomic files, optional packages, progress, threads, numbers and text for people."""
