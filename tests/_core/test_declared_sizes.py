"""Sizes that files claim."""

import json
import struct

import numpy as np
import pytest

from surelabel._core.declared_sizes import check_safetensors
from surelabel._core.npz_file import read_arrays
from surelabel.exceptions import ArtifactError


def _tensors(path, header, data=b""):
    encoded = json.dumps(header).encode() if not isinstance(header, bytes) else header
    path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + data)
    return path


def test_honest_files_pass(tmp_path):
    np.savez(tmp_path / "plain.npz", a=np.zeros((3, 4)), b=np.array(["x", "yy"]), c=np.array(3), d=np.empty((0, 5)))
    np.savez_compressed(tmp_path / "packed.npz", a=np.zeros(10**6))
    read_arrays(tmp_path / "plain.npz")
    read_arrays(tmp_path / "packed.npz")
    header = {"w": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {"format": "pt"}}
    check_safetensors(_tensors(tmp_path / "w.safetensors", header, bytes(24)))


def test_real_tensors_pass(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    numpy.save_file({"a": np.zeros((2, 3), dtype=np.float16), "b": np.zeros((), dtype=np.int64)}, tmp_path / "w")
    check_safetensors(tmp_path / "w")


@pytest.mark.parametrize(
    "header",
    [
        {"w": {"dtype": "F32", "shape": [10**5, 10**5], "data_offsets": [0, 24]}},
        {"w": {"dtype": "F32", "shape": [10**5, 10**5], "data_offsets": [0, 4 * 10**10]}},
        {"w": {"dtype": "F32", "shape": [6], "data_offsets": [24, 0]}},
        {"w": {"dtype": "F32", "shape": [6], "data_offsets": [-24, 0]}},
        {"w": {"dtype": "PY", "shape": [6], "data_offsets": [0, 24]}},
        {"w": {"dtype": "F32", "shape": "six", "data_offsets": [0, 24]}},
        {"w": [1]},
        [1],
        b"{",
        b"[" * 50_000,
    ],
)
def test_tensors_that_claim_more_than_there_is_are_refused(tmp_path, header):
    with pytest.raises(ArtifactError):
        check_safetensors(_tensors(tmp_path / "w.safetensors", header, bytes(24)))


def test_a_cut_file_is_refused(tmp_path):
    for content in (b"", b"\x01", struct.pack("<Q", 10 * 2**30) + b"{}"):
        (tmp_path / "w.safetensors").write_bytes(content)
        with pytest.raises(ArtifactError):
            check_safetensors(tmp_path / "w.safetensors")
    (tmp_path / "a.npz").write_bytes(b"PK")
    with pytest.raises(ArtifactError, match="not an archive of arrays"):
        read_arrays(tmp_path / "a.npz")
