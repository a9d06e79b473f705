"""Temporary folders of a service; those of killed services are removed when the next one begins."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

_PREFIX = "surelabel-service-"


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """Return a temporary folder whose name has the number of this process."""
    return tempfile.TemporaryDirectory(prefix=f"{_PREFIX}{os.getpid()}-")


def remove_left_behind() -> None:
    """Remove the folders of processes that are gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        process = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if process.isdigit() and not _is_alive(int(process)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: int) -> bool:
    """Return whether a process exists."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it belongs to somebody else
        return True
    return True
