"""The command line: parse, call one function, print. One file per group of commands."""

from surelabel.cli import (  # noqa: F401
    commands_data,
    commands_demo,
    commands_experiments,
    commands_model,
    commands_predict,
    commands_serve,
    commands_watch,
)
from surelabel.cli.application import app, main

__all__ = ["app", "main"]

_ORDER = ("demo", "train", "calibrate", "predict", "evaluate", "watch", "compare", "reproduce", "serve", "review")
app.registered_commands.sort(key=lambda command: _ORDER.index(getattr(command.callback, "__name__", "")))
