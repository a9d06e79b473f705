"""Where compiled code is kept if numba finds no place for it, and that users are told what takes long."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from surelabel._kernels import compiling

ASK = """
import logging
logging.basicConfig(level=logging.INFO, format="%(message)s")
import numba.core.caching as caching
# As if no folder could be written to: not beside the package, not the user's.
for kind in (caching.InTreeCacheLocator, caching.UserWideCacheLocator):
    kind.ensure_cache_path = lambda self: (_ for _ in ()).throw(PermissionError("no"))
import numpy as np
from surelabel._kernels import exact_sum
print(exact_sum.band(8), len(exact_sum.band.stats.cache_misses))
"""


def _ask(folder):
    environment = {
        name: value for name, value in os.environ.items() if name not in {"NUMBA_CACHE_DIR", "NUMBA_DISABLE_JIT"}
    }
    source = str(Path(compiling.__file__).parents[2])
    environment |= {"TMPDIR": str(folder), "PYTHONPATH": source}
    return subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True)


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="users are told apart otherwise")
def test_without_a_place_code_is_kept_among_temporary_files(tmp_path):
    first, second = _ask(tmp_path), _ask(tmp_path)
    (folder,) = tmp_path.glob("surelabel-kernels-*")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert f"Compiled searches are kept in {folder}" in first.stderr
    assert "Set NUMBA_CACHE_DIR to a folder that can be written to." in first.stderr
    assert first.stderr.count("Compiling searches") == 1
    assert "Compiling searches" not in second.stderr
    value, misses = first.stdout.split()
    assert misses == "1"
    assert second.stdout.split() == [value, "0"]


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="users are told apart otherwise")
def test_a_temporary_folder_that_others_can_write_to_is_not_used(tmp_path):
    made = tmp_path / f"surelabel-kernels-{os.getuid()}"
    made.mkdir()
    made.chmod(0o777)
    ran = _ask(tmp_path)
    assert "Compiled searches cannot be kept" in ran.stderr
    assert not list(made.iterdir())
    shutil.rmtree(made)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    made.symlink_to(elsewhere)
    assert "Compiled searches cannot be kept" in _ask(tmp_path).stderr
    assert not list(elsewhere.iterdir())
