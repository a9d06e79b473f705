"""The application: what all commands share, and what an error or an interruption ends as."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import signal
import socket
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.logging import RichHandler

import surelabel
from surelabel._core.wording import terminal_words
from surelabel.exceptions import (
    ArtifactError,
    CorpusError,
    InvalidInputError,
    MissingDependencyError,
    SurelabelError,
    SurelabelWarning,
)

_USAGE_ERROR: Any = typer.BadParameter.__mro__[2]
_EXIT_CODES = """Exit codes:

\b
0    done
1    stopped by an error that has no code of its own
2    wrong use: an option or argument is not what it must be
3    texts, a corpus or a download could not be found or used
4    a model bundle is missing, damaged, or not to be trusted
5    an optional package is missing; the message says which
6    a promise was broken: more errors than chance explains (train and evaluate with --fail-on-broken-promise)
7    an alarm: texts are unlike those of calibration (watch)
130  stopped by Ctrl-C; files are whole, and the last line says how to resume
"""
BROKEN_PROMISE, ALARM = 6, 7
_CODES: dict[type[SurelabelError], int] = {
    InvalidInputError: 2,
    CorpusError: 3,
    ArtifactError: 4,
    MissingDependencyError: 5,
}
_INTERRUPTED = 130
_TO_RESUME = "run the command again (predict: with --resume to continue where it was)."
# A command that cannot stop by itself within so many seconds of Ctrl-C is ended: files are whole at any moment.
_GRACE = 1.5

app = typer.Typer(
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
console = Console()
errors = Console(stderr=True)


@dataclasses.dataclass
class _State:
    """What was asked for in general."""

    quiet: bool = False
    debug: bool = False
    to_resume: str = _TO_RESUME

    @property
    def stopped(self) -> str:
        """The last line after Ctrl-C."""
        return f"stopped. Files are whole; {self.to_resume}"


state = _State()


def _set_up() -> None:
    """Send the log and warnings to standard error, each as one line."""
    on_terminal = errors.is_terminal
    handler: logging.Handler = (
        RichHandler(console=errors, show_path=False, show_level=False, omit_repeated_times=False)
        if on_terminal
        else logging.StreamHandler(sys.stderr)
    )
    level = logging.WARNING if state.quiet else logging.INFO
    logging.basicConfig(level=level, format="%(message)s", handlers=[handler], force=True)
    for name in ("numba", "matplotlib", "fontTools", "distributed"):
        logging.getLogger(name).setLevel(logging.WARNING)
    warnings.simplefilter("once", SurelabelWarning)
    warnings.showwarning = _show_warning


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Log a warning instead of printing where it comes from."""
    logging.getLogger("surelabel").warning("warning: %s", terminal_words(message))


def _be_quiet(asked: bool) -> bool:
    if asked:
        state.quiet = True
        logging.getLogger().setLevel(logging.WARNING)
    return asked


def _debug(asked: bool) -> bool:
    if asked:
        state.debug = True
        logging.getLogger("surelabel").setLevel(logging.DEBUG)
    return asked


def _print_version(asked: bool) -> None:
    """Print the version and stop, if asked to."""
    if asked:
        typer.echo(f"surelabel {surelabel.__version__}")
        raise typer.Exit


Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Say nothing but results, warnings and errors.", callback=_be_quiet)
]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback if there is an error.", callback=_debug)]


@app.callback()
def common(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Multi-label text classification that knows when it is sure.

    \b
    First steps:
      surelabel demo                                       the whole journey in two minutes
      surelabel train texts.csv --labels tags --out model  a model of your own texts
      surelabel predict model new.txt                      what it says about new texts
      surelabel serve model                                the same in a browser
    """
    _set_up()


def say(message: str, style: str | None = None) -> None:
    """Print a line of result for people; long lines are left to the terminal."""
    console.print(terminal_words(message), style=style, markup=False, highlight=False, soft_wrap=True)


def _fail(error: BaseException, message: str, code: int) -> NoReturn:
    """End with one sentence, and with a traceback in debug mode."""
    if state.debug:
        traceback.print_exception(error)
    print(f"surelabel: {terminal_words(message)}", file=sys.stderr)  # noqa: T201
    raise SystemExit(code)


def _end_after_grace(wakeup: socket.socket) -> None:
    """Wait for Ctrl-C; end the process if it has not ended by itself soon after."""
    while True:
        numbers = wakeup.recv(1)
        if not numbers:
            return
        # A server has a handler of its own, and stops in its own time.
        if numbers[0] == signal.SIGINT and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            break
    wakeup.settimeout(_GRACE)
    with contextlib.suppress(TimeoutError):
        while wakeup.recv(1):
            pass
        return
    # A kernel or a library is busy and does not come back to Python, where Ctrl-C would be noticed.
    print(f"\nsurelabel: {state.stopped}", file=sys.stderr, flush=True)  # noqa: T201
    os._exit(_INTERRUPTED)


@contextlib.contextmanager
def _stops_soon() -> Iterator[None]:
    """End the process soon after Ctrl-C, whatever it is doing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    old = signal.set_wakeup_fd(ours.fileno(), warn_on_full_buffer=False)
    watcher = threading.Thread(target=_end_after_grace, args=(theirs,), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            signal.set_wakeup_fd(old)
        ours.close()
        watcher.join()
        theirs.close()


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and end the process: an error is one sentence, a traceback only with --debug."""
    with _stops_soon():
        _run(arguments)


def _run(arguments: list[str] | None) -> NoReturn:
    """Run the command line; turn what it ends with into a sentence and an exit code."""
    state.quiet = state.debug = False
    state.to_resume = _TO_RESUME
    try:
        code = app(arguments, prog_name="surelabel", standalone_mode=False)
        sys.stdout.flush()
    except _USAGE_ERROR as error:
        where = f" (see {error.ctx.command_path} --help)" if getattr(error, "ctx", None) else ""
        _fail(error, f"{error.format_message().rstrip('.')}{where}.", error.exit_code)
    except SurelabelError as error:
        _fail(error, str(error), next((code for kind, code in _CODES.items() if isinstance(error, kind)), 1))
    except (typer.Abort, KeyboardInterrupt) as error:
        _fail(error, state.stopped, _INTERRUPTED)
    except BrokenPipeError:
        # Who read the output has had enough: nothing is left to say, and nowhere to say it.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
    except (OSError, MemoryError, UnicodeError) as error:
        _fail(error, f"{error or type(error).__name__}. Try again, or see more with --debug.", 1)
    except Exception as error:
        _fail(error, f"an unexpected {type(error).__name__}: {error}. Run again with --debug and tell us.", 1)
    if code == _INTERRUPTED:  # what typer makes of Ctrl-C
        _fail(KeyboardInterrupt(), state.stopped, _INTERRUPTED)
    raise SystemExit(code if isinstance(code, int) else 0)
