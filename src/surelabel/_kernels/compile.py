"""Decorators for kernels, and the folder that keeps compiled code.

numba keeps compiled code in NUMBA_CACHE_DIR, beside the package, or in the user's cache folder. If it can write to none
of them, it refuses to define kernels; then a private folder below the system's temporary one is tried, and if that
fails too, every process compiles its own. numba replaces files of its cache atomically, so processes may share it.
"""

from __future__ import annotations

import logging
import os
import stat
import tempfile
from pathlib import Path

import numba
from numba import njit

_log = logging.getLogger(__name__)
_ADVICE = "Set NUMBA_CACHE_DIR to a folder that can be written to."


def _probe() -> None:
    """Do nothing: a function to probe numba's cache with."""


def _can_cache() -> bool:
    """Return whether numba finds a folder for compiled code."""
    try:
        njit(cache=True)(_probe)
    except RuntimeError:
        return False
    return True


def _private_folder() -> Path | None:
    """Return a temporary folder that no other user can write code to; None if it cannot be had."""
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
    is_private = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077
    return folder if is_private else None


def _find_folder() -> bool:
    """Return whether compiled code is kept, after trying a private folder."""
    if _can_cache():
        return True
    folder = _private_folder()
    if folder is None:
        _log.warning("Compiled searches cannot be kept: every process compiles them, for seconds. %s", _ADVICE)
        return False
    numba.config.CACHE_DIR = str(folder)
    _log.warning("Compiled searches are kept in %s, as no better folder can be written to. %s", folder, _ADVICE)
    return _can_cache()


IS_KEPT = _find_folder()
_options = {"nogil": True, "no_cfunc_wrapper": True, "error_model": "numpy"}
# Called from Python.
kernel = njit(**_options, cache=IS_KEPT)
# Called by kernels only: compiled without the wrapper for calls from Python.
part = njit(**_options, no_cpython_wrapper=True)
