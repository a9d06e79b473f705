"""How kernels are compiled, and where compiled code is kept.

Code is kept where numba finds a folder: NUMBA_CACHE_DIR, beside the package, or the user's cache folder. If it can
write to none of them, numba refuses to define the kernels; then they are kept in a folder of the user's own among the
temporary ones, or, if that is not to be had, compiled by each process.

Small jobs do not wait for it: a kernel that is not compiled yet runs as the Python that it is, with the same results,
until its jobs add up to something (`quick`).
"""

from __future__ import annotations

import functools
import gc
import logging
import math
import os
import stat
import tempfile
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
import numpy as np
from numba import njit
from numba.core import event
from numba.extending import register_jitable

_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


def _nothing() -> None:
    """Be compiled by nobody: to ask whether it could be kept."""


def _is_kept() -> bool:
    """Tell whether numba finds a folder for compiled code."""
    try:
        njit(cache=True)(_nothing)
    except RuntimeError:
        return False
    return True


def _temporary_folder() -> Path | None:
    """Return a folder among the temporary ones that nobody else can write code to, None if it is not to be had."""
    if not hasattr(os, "getuid"):
        return None
    folder = Path(tempfile.gettempdir()) / f"surelabel-kernels-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError:
        return None
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return folder if is_own else None


def _find_place() -> bool:
    """Tell whether compiled code can be kept, after looking for another folder if numba finds none."""
    if _is_kept():
        return True
    folder = _temporary_folder()
    advice = "Set NUMBA_CACHE_DIR to a folder that can be written to."
    if folder is None:
        _log.warning("Compiled searches cannot be kept: every process takes ten seconds for them. %s", advice)
        return False
    numba.config.CACHE_DIR = str(folder)
    _log.warning("Compiled searches are kept in %s, for want of a better place. %s", folder, advice)
    return _is_kept()


class _Compiling(event.Listener):
    """Says once per process that searches are being compiled; collecting garbage waits, which saves a tenth of it."""

    is_silent = False
    depth = 0
    collects = False

    def on_start(self, event: Any) -> None:
        """Speak at the first search of this package; numba compiles one function at a time, with those it calls."""
        if self.depth == 0:
            self.collects = gc.isenabled()
            gc.disable()
        self.depth += 1
        if not self.is_silent and event.data["dispatcher"].py_func.__module__.startswith("surelabel."):
            self.is_silent = True
            _log.info("Compiling searches: some seconds, once per installation.")

    def on_end(self, event: Any) -> None:
        """Collect garbage again."""
        self.depth -= 1
        if self.depth == 0 and self.collects:
            gc.enable()


IS_KEPT = _find_place()
event.register("numba:compile", _Compiling())

# numba compiles a function anew for each kind of arguments, and a constant 0 is a kind of its own: kernels pass
# `np.int64(0)` to functions that get numbers elsewhere.
_options = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
# Called from Python.
kernel = njit(**_options, cache=IS_KEPT)
# Called by kernels only, whose compiled code has it: without the function through which Python would call it, which
# takes long to compile. A call from Python would end the process.
part = njit(**_options, no_cpython_wrapper=True)
# Copied into what calls it.
inlined = njit(inline="always")
# Called by kernels, and by Python as it is.
both = register_jitable


# Steps that a kernel may take as Python, of some ten microseconds each: together a fraction of what compiling takes.
few = types.SimpleNamespace(steps=100_000)
_steps: dict[Any, float] = {}
# What stands for a compiled function in Python, if not the function itself.
in_python: dict[Any, Callable[..., Any]] = {}
# Compiled functions take these of the C library, as `math` does; numpy has others, which differ in the last bit.
_LARGEST_EXPONENT = 709.782712893384
_numpy = types.SimpleNamespace(
    **vars(np)
    | {
        "exp": lambda value: math.exp(value) if value <= _LARGEST_EXPONENT else value * math.inf,
        "log": lambda value: math.log(value) if value > 0.0 else value - math.inf,
        "log1p": math.log1p,
    }
)


def quickest(kernel: Any, n_steps: int) -> Callable[..., Any]:
    """Return a kernel, or the Python that it is made of if it is not compiled yet and so few steps are not worth it."""
    if kernel not in _steps:
        _steps[kernel] = math.inf if _is_stored(kernel) else 0.0
    _steps[kernel] += n_steps
    if _steps[kernel] <= few.steps:
        return functools.partial(_run, _interpreted(kernel))
    _steps[kernel] = math.inf
    run: Callable[..., Any] = kernel
    return run


def quick(n_steps: Callable[..., int]) -> Callable[[Callable[..., _Result]], Callable[..., _Result]]:
    """Make a function a kernel that takes the quickest way; `n_steps` says from its arguments how large a job is."""

    def made(function: Callable[..., _Result]) -> Callable[..., _Result]:
        compiled: Any = kernel(function)
        if compiled is function:  # nothing is compiled
            return functools.partial(_run, function)

        def run(*arguments: Any) -> Any:
            if _steps.get(compiled) == math.inf:
                return compiled(*arguments)
            return quickest(compiled, n_steps(*arguments))(*arguments)

        return functools.update_wrapper(run, compiled, updated=())

    return made


def compile_at_once() -> None:
    """Compile kernels even for the smallest job from now on: for a process that will answer for long."""
    few.steps = 0


def _is_stored(kernel: Any) -> bool:
    """Tell whether a kernel was compiled before, by this process or another one, or never is."""
    if not hasattr(kernel, "py_func") or kernel.signatures:
        return True
    function = kernel.py_func
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}-{function.__code__.co_firstlineno}.*nbi"
    return IS_KEPT and any(Path(kernel.stats.cache_path).glob(name))


@functools.cache
def _interpreted(kernel: Any) -> Any:
    """Return what a compiled function is made of, with what it calls, as Python functions."""
    if kernel in in_python:
        return in_python[kernel]
    code, names = kernel.py_func.__code__, kernel.py_func.__globals__ | {"np": _numpy}
    for name in code.co_names:
        if hasattr(names.get(name), "py_func"):
            names[name] = _interpreted(names[name])
    return types.FunctionType(code, names)


def _run(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function as if it were compiled: what overflows is infinite, without a word, and numbers are Python's."""
    with np.errstate(all="ignore"):
        return _plain(function(*arguments))


def _plain(result: Any) -> Any:
    """Return a number of numpy's, or a tuple of them, as Python's."""
    if isinstance(result, tuple):
        return tuple(map(_plain, result))
    return result.item() if isinstance(result, np.generic) else result
