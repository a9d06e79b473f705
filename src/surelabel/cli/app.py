"""The application: options of all commands, errors and exit codes."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import traceback
import types
import warnings
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

import surelabel
from surelabel import exceptions
from surelabel._core.formatting import plain

# typer's own error or click's, whichever it is built on.
_USAGE_ERROR: Any = typer.BadParameter.__bases__[0]
_EXIT_CODES = """Exit codes:

\b
0    done
1    an error without a code of its own
2    wrong use: an option or argument is invalid
3    a file, corpus or download is missing or unreadable
4    a model is missing, damaged, or not to be trusted
5    an optional package is missing; the message names it
6    more errors than allowed (evaluate --fail-on-broken-promise)
7    an alarm: texts are unlike those of calibration (watch)
130  stopped by Ctrl-C; no file is damaged
"""
BROKEN_PROMISE, ALARM = 6, 7
_CODES: dict[type[exceptions.SurelabelError], int] = {
    exceptions.InvalidInputError: 2,
    exceptions.CorpusError: 3,
    exceptions.ArtifactError: 4,
    exceptions.MissingDependencyError: 5,
}
_INTERRUPTED, _CLOSED_PIPE = 130, 141
_STOPPED = "stopped. No file is damaged. Run the same command again to continue."
_EVERYWHERE = ("--quiet", "-q", "--debug")

app = typer.Typer(
    epilog=_EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
console = Console()
errors = Console(stderr=True)
state = types.SimpleNamespace(quiet=False, debug=False)


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"surelabel {surelabel.__version__}")
        raise typer.Exit


@app.callback()
def common(
    *,
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_print_version, is_eager=True)
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print only results, warnings and errors.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")] = False,
) -> None:
    """Tag texts, file those that Surelabel can vouch for, and get a short list for the rest.

    \b
    First steps:
      surelabel demo                                       the whole journey in a minute
      surelabel train texts.csv --labels tags --out model  a model of your own texts
      surelabel predict model new.txt                      file, choose or read: a decision for each text
      surelabel serve model                                the same in a browser
    """
    state.quiet, state.debug = quiet, debug
    level = logging.WARNING if quiet else logging.INFO
    logging.basicConfig(level=level, format="%(message)s", stream=sys.stderr, force=True)
    for name in ("numba", "matplotlib", "fontTools", "distributed", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.WARNING)
    if debug:
        logging.getLogger("surelabel").setLevel(logging.DEBUG)
    warnings.simplefilter("once", exceptions.SurelabelWarning)
    warnings.showwarning = _show_warning


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Log a warning in one line."""
    logging.getLogger("surelabel").warning("warning: %s", plain(message))


def say(message: str = "") -> None:
    """Print a line of result; the terminal wraps long ones."""
    console.print(plain(message), markup=False, highlight=False, soft_wrap=True)


def usage_error(message: str, option: str) -> typer.BadParameter:
    """Return the error for a wrong option or argument."""
    return typer.BadParameter(message, param_hint=option)


def _fail(error: BaseException, message: str, code: int) -> NoReturn:
    """End with one line, and with a traceback in debug mode."""
    if state.debug:
        traceback.print_exception(error)
    print(f"surelabel: {plain(message)}", file=sys.stderr)  # noqa: T201
    raise SystemExit(code)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line and end the process."""
    given = sys.argv[1:] if arguments is None else arguments
    # --quiet and --debug may stand anywhere.
    given = [option for option in given if option in _EVERYWHERE] + [part for part in given if part not in _EVERYWHERE]
    state.quiet, state.debug = False, "--debug" in given
    try:
        code = app(given, prog_name="surelabel", standalone_mode=False)
        sys.stdout.flush()
    except _USAGE_ERROR as error:
        where = f" (see {error.ctx.command_path} --help)" if getattr(error, "ctx", None) else ""
        _fail(error, f"{error.format_message().rstrip('.')}{where}.", error.exit_code)
    except exceptions.SurelabelError as error:
        _fail(error, str(error), next((code for kind, code in _CODES.items() if isinstance(error, kind)), 1))
    except (typer.Abort, KeyboardInterrupt) as error:
        _fail(error, _STOPPED, _INTERRUPTED)
    except BrokenPipeError:
        # The reader closed the pipe.
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(_CLOSED_PIPE) from None
    except (OSError, MemoryError, UnicodeError) as error:
        _fail(error, f"{error or type(error).__name__}. Try again, or see more with --debug.", 1)
    except Exception as error:
        _fail(error, f"an unexpected {type(error).__name__}: {error}. Run again with --debug and report it.", 1)
    if code == _INTERRUPTED:  # typer turns Ctrl-C into a code
        _fail(KeyboardInterrupt(), _STOPPED, _INTERRUPTED)
    raise SystemExit(code if isinstance(code, int) else 0)
