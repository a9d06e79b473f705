"""The command line: one module per command. Nothing heavy is imported before a command runs."""

from surelabel.cli import demo, train, predict, evaluate, calibrate, serve, review, learn, watch, data, reproduce  # isort: skip
from surelabel.cli.app import app, main

__all__ = [
    "app",
    "calibrate",
    "data",
    "demo",
    "evaluate",
    "learn",
    "main",
    "predict",
    "reproduce",
    "review",
    "serve",
    "train",
    "watch",
]
