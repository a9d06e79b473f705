"""The command line in this process: its exit code and what it printed."""

import contextlib
import dataclasses
import io
import logging
import sys
import warnings

import pytest

from surelabel.cli import main


@dataclasses.dataclass
class Result:
    code: int
    out: str
    err: str


def run_here(*arguments):
    """Run a command; log, warnings and streams are put back afterwards."""
    loggers = [logging.getLogger(), logging.getLogger("surelabel")]
    before = [(logger.handlers[:], logger.level) for logger in loggers]
    out, err = io.StringIO(), io.StringIO()
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            pytest.raises(SystemExit) as ended,
        ):
            main([str(argument) for argument in arguments])
    finally:
        for logger, (handlers, level) in zip(loggers, before, strict=True):
            logger.handlers[:] = handlers
            logger.setLevel(level)
        sys.stdout.flush()
    return Result(ended.value.code, out.getvalue(), err.getvalue())
