"""How kernels are compiled, and where compiled code is kept.

Code is kept where numba finds a folder: NUMBA_CACHE_DIR, beside the package, or the user's cache folder. If it can
write to none of them, numba refuses to define the kernels; then they are kept in a folder of the user's own among the
temporary ones, or, if that is not to be had, compiled by each process.
"""

from __future__ import annotations

import gc
import logging
import os
import stat
import tempfile
from pathlib import Path
from typing import Any

import numba
from numba import njit
from numba.core import event

_log = logging.getLogger(__name__)


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
    """Return a folder among the temporary ones that nobody else can write to, None if it is not to be had.

    Compiled code is run as it is read: a folder that is another user's, or open to others, is not used.
    """
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

_options = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
# Called from Python.
kernel = njit(**_options, cache=IS_KEPT)
# Called by kernels only, whose compiled code has it: without the function through which Python would call it, which
# takes long to compile. A call from Python would end the process.
part = njit(**_options, no_cpython_wrapper=True)
# Copied into what calls it.
inlined = njit(inline="always")
