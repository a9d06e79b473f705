"""Sizes that files claim."""

import numpy as np
import pytest

from surelabel._core.npz_file import read_arrays
from surelabel.exceptions import ArtifactError


def test_honest_files_pass(tmp_path):
    np.savez(tmp_path / "plain.npz", a=np.zeros((3, 4)), b=np.array(["x", "yy"]), c=np.array(3), d=np.empty((0, 5)))
    np.savez_compressed(tmp_path / "packed.npz", a=np.zeros(10**6))
    read_arrays(tmp_path / "plain.npz")
    read_arrays(tmp_path / "packed.npz")


def test_a_cut_file_is_refused(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"PK")
    with pytest.raises(ArtifactError, match="not an archive of arrays"):
        read_arrays(tmp_path / "a.npz")
