"""Files and folders that are either whole or not there."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from surelabel.exceptions import InvalidInputError

__all__ = ["atomic_file", "atomic_folder", "lock_file"]

# Of Linux' renameat2: paths are relative to the current folder; exchange two of them.
_HERE, _EXCHANGE = -100, 2


def _sync(path: Path) -> None:
    """Ask the system to put a file or folder on the disk before it is renamed."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it takes its place when the block ends without an error.

    A reader sees the old file or the new one, never a part. After an error or a kill the old file is
    as it was.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> target = pathlib.Path(tempfile.mkdtemp()) / "answer.txt"
    >>> with atomic_file(target) as temporary:
    ...     _ = temporary.write_text("42")
    >>> target.read_text()
    '42'
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        _sync(temporary)
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
        _sync(target.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _exchanged(one: Path, other: Path) -> bool:
    """Let two paths change places in one step; False where the system or the file system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    return bool(rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


def _replace_in_two_steps(temporary: Path, target: Path) -> None:
    """Move an old folder aside, the new one into its place, and remove the old one."""
    old = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".old"))
    target.replace(old / "replaced")
    try:
        temporary.replace(target)
    except OSError:
        (old / "replaced").replace(target)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)


@contextlib.contextmanager
def atomic_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary folder beside `path`; it takes its place when the block ends without an error.

    An older folder of that name changes places with it in one step, where the system can do that (Linux), and
    is removed last, so that a kill leaves the old or the new one there. Elsewhere the old one is moved aside first.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part"))
    try:
        yield temporary
        for file in temporary.rglob("*"):
            _sync(file)
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o777 & ~umask)
        if not target.exists():
            temporary.replace(target)
        elif not _exchanged(temporary, target):
            _replace_in_two_steps(temporary, target)
        _sync(target.parent)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def lock_file(file: IO[Any], target: Path) -> None:
    """Keep others from writing `target` at the same time, where the system can; closing the file ends it."""
    try:
        import fcntl  # noqa: PLC0415 (not on every system)
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        raise InvalidInputError(f"Another run writes {target} at this moment. Wait for it, or end it.") from error
