"""Files and folders that are either complete or absent."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from surelabel._core.extras import import_extra
from surelabel.exceptions import InvalidInputError

# Of Linux' renameat2: paths are relative to the current folder; exchange two of them.
_HERE, _EXCHANGE = -100, 2


def cache_root(who: str) -> Path:
    """Return the folder that SURELABEL_CACHE names, or the platform's folder for caches; `who` needs it."""
    named = os.environ.get("SURELABEL_CACHE")
    if named:
        return Path(named).expanduser()
    return Path(import_extra("platformdirs", "corpora", who).user_cache_dir("surelabel", appauthor=False))


def leads_outside(name: str) -> bool:
    """Tell whether a name in a list or an archive could lead out of its folder, on any system."""
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts or any(mark in name for mark in "\\:\0")


def _sync(path: Path) -> None:
    """Ask the system to put a file or folder on the disk before it is renamed."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _permit(path: Path, mode: int) -> None:
    """Let others read a temporary file or folder as they may read any new one."""
    umask = os.umask(0)
    os.umask(umask)
    path.chmod(mode & ~umask)


def _lock(path: Path) -> int | None:
    """Lock a file or folder until the returned descriptor is closed or the process dies; None without such locks."""
    try:
        import fcntl  # noqa: PLC0415 (not on every system)
    except ImportError:
        return None
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


@contextlib.contextmanager
def _temporary(make: Callable[[], Path]) -> Iterator[Path]:
    """Yield a new file or folder, locked, so that a clean-up sees that its process is alive."""
    while True:
        path = make()
        try:
            descriptor = _lock(path)
        except (BlockingIOError, FileNotFoundError):
            continue  # a clean-up took it for a dead run's just then
        if descriptor is None or path.exists():
            break
        os.close(descriptor)
    try:
        yield path
    finally:
        if descriptor is not None:
            os.close(descriptor)


def clean_up(path: str | os.PathLike[str]) -> None:
    """Remove what killed runs left half-written beside a file or folder."""
    # An old folder that a killed run had moved aside is put back if there is no new one. What a living process is
    # writing is locked by it, and stays; so does everything if the system has no such locks.
    target = Path(path).absolute()
    ours = re.compile(rf"\.{re.escape(target.name)}\.[a-z0-9_]{{8}}\.(part|old)")
    with contextlib.suppress(OSError):
        for left in [entry for entry in target.parent.iterdir() if ours.fullmatch(entry.name)]:
            _remove_if_stale(left, target)


def _remove_if_stale(left: Path, target: Path) -> None:
    """Remove what a dead process left; an old folder goes back to its place if nothing is there."""
    with contextlib.suppress(OSError):
        descriptor = _lock(left)
        if descriptor is None:
            return
        try:
            if (left / "replaced").exists() and not target.exists():
                (left / "replaced").replace(target)
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink()
        finally:
            os.close(descriptor)


def _temporary_folder(target: Path, suffix: str) -> Path:
    return Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=suffix))


def _temporary_file(target: Path) -> Path:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    os.close(handle)
    return Path(name)


@contextlib.contextmanager
def atomic_file(path: str | os.PathLike[str], *, clean: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside `path`; it takes its place when the block ends without an error."""
    # A reader sees the old file or the new one, never a part of one. `clean=False` does not look through the folder for
    # what a killed run left: that is slow if you write many files, or one file many times.
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    if clean:
        clean_up(target)
    with _temporary(lambda: _temporary_file(target)) as temporary:
        try:
            yield temporary
            _sync(temporary)
            _permit(temporary, 0o666)
            temporary.replace(target)
            _sync(target.parent)
        finally:
            temporary.unlink(missing_ok=True)


def _exchanged(one: Path, other: Path) -> bool:
    """Swap two paths in one step; False if the system or the file system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    return bool(rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0)


def _replace_in_two_steps(temporary: Path, target: Path) -> None:
    """Move an old folder aside, the new one into its place, and remove the old one."""
    with _temporary(lambda: _temporary_folder(target, ".old")) as old:
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
    """Yield a temporary folder beside `path`; it takes its place when the block ends without an error."""
    # An older folder changes places with it in one step, if the system can do that (Linux), and is removed last, so
    # that a kill leaves the old or the new one there. Elsewhere the old one is moved aside first.
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    clean_up(target)
    with _temporary(lambda: _temporary_folder(target, ".part")) as temporary:
        try:
            yield temporary
            for file in temporary.rglob("*"):
                _sync(file)
            _permit(temporary, 0o777)
            if not target.exists():
                temporary.replace(target)
            elif not _exchanged(temporary, target):
                _replace_in_two_steps(temporary, target)
            _sync(target.parent)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)


@contextlib.contextmanager
def locked(path: Path, target: Path) -> Iterator[None]:
    """Hold a lock file while the block lasts, so that no other process writes `target`; a kill ends it too."""
    # The lock is taken before anything of the target is opened, and its file is removed while it is held: whoever
    # opened that file in the meantime sees that it is gone, and makes a new one.
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        path.touch()
        try:
            descriptor = _lock(path)
        except FileNotFoundError:
            continue
        except BlockingIOError:
            message = f"Another run is writing {target}. Wait for it, or stop it."
            raise InvalidInputError(message) from None
        if descriptor is None:
            break
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(path.stat(), os.fstat(descriptor)):
                break
        os.close(descriptor)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            path.unlink()
        if descriptor is not None:
            os.close(descriptor)
