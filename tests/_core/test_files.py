import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from surelabel._core import files
from surelabel.exceptions import ArtifactError, InvalidInputError


def test_a_file_is_replaced_only_without_an_error(tmp_path):
    path = tmp_path / "deep" / "a.txt"
    with files.atomic_file(path) as file:
        file.write("one\n")
    assert path.read_bytes() == b"one\n"
    with pytest.raises(ValueError, match="two"), files.atomic_file(path) as file:
        raise ValueError(file.write("two") and "two")
    assert path.read_text() == "one\n"
    assert os.listdir(path.parent) == ["a.txt"]  # noqa: PTH208


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path):
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with files.atomic_file(tmp_path / "link", "wb") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"new"


def test_a_device_is_not_replaced(tmp_path):
    with files.atomic_file("/dev/null") as file:
        file.write("text")
    assert not Path("/dev/null").is_file()
    with pytest.raises(InvalidInputError, match="folder"), files.atomic_file(tmp_path):
        pass


def test_permissions_are_those_of_a_new_or_of_the_old_file(tmp_path):
    path = tmp_path / "a"
    mask = os.umask(0o027)
    try:
        with files.atomic_file(path):
            pass
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o600)
    with files.atomic_file(path):
        pass
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_folder_replaces_another_at_once(tmp_path):
    target = tmp_path / "model"
    for name in ("one", "two"):
        with files.atomic_folder(target) as folder:
            (folder / "sub").mkdir()
            (folder / "sub" / name).write_text(name)
    assert [path.name for path in (target / "sub").iterdir()] == ["two"]
    with pytest.raises(ZeroDivisionError), files.atomic_folder(target):
        1 / 0  # noqa: B018
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_killed_process_leaves_the_old_file_and_the_next_one_cleans_up(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    code = (
        "import os, sys; from surelabel._core import files\n"
        "with files.atomic_file(sys.argv[1]) as file: file.write('half'); file.flush(); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, path], check=False)
    assert path.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2
    with files.atomic_file(path) as file:
        file.write("new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "new"


def test_only_a_folder_of_ours_is_overwritten(tmp_path):
    assert files.check_overwrite(tmp_path / "new") == tmp_path / "new"
    (tmp_path / "mine").mkdir()
    files.check_overwrite(tmp_path / "mine")
    (tmp_path / "mine" / "thesis.doc").write_text("x")
    with pytest.raises(InvalidInputError, match="something other"):
        files.check_overwrite(tmp_path / "mine")
    with pytest.raises(InvalidInputError, match="is a file"):
        files.check_overwrite(tmp_path / "mine" / "thesis.doc")
    (tmp_path / "mine" / "manifest.json").write_text('{"name": "a page for browsers", "icons": []}')
    with pytest.raises(InvalidInputError, match="something other"):
        files.check_overwrite(tmp_path / "mine")
    files.write_manifest(tmp_path / "mine")
    assert files.check_overwrite(tmp_path / "mine") == tmp_path / "mine"


def test_nothing_is_written_inside_a_folder_of_ours(folder, tmp_path):
    (tmp_path / "link").symlink_to(folder)
    before = sorted(tmp_path.rglob("*"))
    for place in (folder / "new", folder / "deep" / "new", tmp_path / "link" / "new"):
        with pytest.raises(InvalidInputError, match="inside the model"):
            files.check_overwrite(place)
        for write in (files.atomic_file, files.atomic_folder):
            with pytest.raises(InvalidInputError, match="inside the model"), write(place):
                pass
    assert sorted(tmp_path.rglob("*")) == before


@pytest.fixture
def folder(tmp_path):
    target = tmp_path / "bundle"
    (target / "deep").mkdir(parents=True)
    (target / "a.json").write_text('{"a": 1}')
    (target / "deep" / "b.bin").write_bytes(bytes(range(256)))
    files.write_manifest(target)
    return target


def test_a_folder_is_verified_and_not_written_to(folder):
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert files.check_manifest(folder) == ["a.json", "deep/b.bin"]
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize("litter", [".DS_Store", "deep/.DS_Store", "Thumbs.db", ".git/config", "__MACOSX/a"])
def test_litter_of_operating_systems_does_not_matter(folder, litter):
    (folder / litter).parent.mkdir(exist_ok=True)
    (folder / litter).write_bytes(b"x")
    assert files.check_manifest(folder) == ["a.json", "deep/b.bin"]


@pytest.mark.parametrize("name", ["a.json", "deep/b.bin", "manifest.json"])
@pytest.mark.parametrize("damage", ["flip", "cut", "longer", "remove", "link", "folder"])
def test_every_damage_is_refused(folder, tmp_path, name, damage):
    path = folder / name
    data = path.read_bytes()
    if damage == "flip":
        path.write_bytes(data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :])
    elif damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif damage == "longer":
        path.write_bytes(data + b"x")
    else:
        path.unlink()
    if damage == "link":
        (tmp_path / "outside").write_bytes(data)
        path.symlink_to(tmp_path / "outside")
    elif damage == "folder":
        path.mkdir()
    with pytest.raises(ArtifactError):
        files.check_manifest(folder)


def rewrite(folder, names):
    """Write a manifest whose own checksum is right, with the entry of a.json under other names."""
    document = json.loads((folder / "manifest.json").read_text())
    document["files"] = dict.fromkeys(names, document["files"]["a.json"])
    document["sha256"] = files._own_checksum(document)
    (folder / "manifest.json").write_text(json.dumps(document))


@pytest.mark.parametrize("name", ["../a.json", "/etc/passwd", "C:\\a", "deep/../../a", "", "."])
def test_names_outside_the_folder_are_refused(folder, name):
    rewrite(folder, ["a.json", "deep/b.bin", name])
    with pytest.raises(ArtifactError, match="outside"):
        files.check_manifest(folder)


def test_a_file_that_is_not_listed_is_refused(folder, tmp_path):
    (folder / "more.bin").write_bytes(b"x")
    with pytest.raises(ArtifactError, match="more"):
        files.check_manifest(folder)
    for empty in (tmp_path / "nothing", tmp_path):
        with pytest.raises(ArtifactError):
            files.check_manifest(empty)


DTYPES = st.sampled_from([np.float64, np.int64, np.uint64, np.bool_, np.int8, "<U5"])


@given(arrays_of.arrays(DTYPES, arrays_of.array_shapes(min_dims=0, max_dims=3, min_side=0)))
def test_arrays_come_back_bit_for_bit(tmp_path_factory, array):
    path = tmp_path_factory.mktemp("npz") / "a.npz"
    files.write_arrays(path, {"kind": "test", "n": 3}, {"x": array, "y": np.arange(3)})
    header, arrays = files.read_arrays(path, "test")
    assert header["n"] == 3
    assert arrays["x"].tobytes() == array.tobytes()
    assert (arrays["x"].dtype, arrays["x"].shape) == (array.dtype, array.shape)


def test_equal_contents_are_equal_bytes(tmp_path):
    for name in ("a", "b"):
        files.write_arrays(tmp_path / name, {"kind": "test"}, {"x": np.arange(9)})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_large_array_of_zeros_comes_back(tmp_path):
    files.write_arrays(tmp_path / "a", {"kind": "test"}, {"x": np.zeros(70 * 2**20, dtype=np.int8)})
    assert files.read_arrays(tmp_path / "a", "test")[1]["x"].sum() == 0


def pack(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def npy(array, **changes):
    import io

    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), allow_pickle=True)
    data = stream.getvalue()
    for old, new in changes.items():
        data = data.replace(old.encode(), new.encode())
    return data


HEADER = ("header.npy", npy(json.dumps({"kind": "test", "arrays": ["x"]})))
TEN_GB = b"\x93NUMPY\x01\x00\x46\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1250000000,), }      \n"


@pytest.mark.parametrize(
    "members",
    [
        [],
        [HEADER, HEADER],
        [("x.npy", npy([1]))],
        [HEADER, ("evil.py", b"import os")],
        [HEADER, ("x.npy", npy(np.array([print], dtype=object)))],
        [HEADER, ("x.npy", TEN_GB)],
        [HEADER, ("x.npy", npy([1, 2, 3])[:-1])],
        [HEADER, ("x.npy", npy([1, 2, 3]) + b"more")],
        [("header.npy", npy("{"))],
        [("header.npy", npy("[1]"))],
        [HEADER, ("x.npy", b"\0" * (80 * 2**20))],
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_hostile_archives_are_refused(tmp_path, members):
    with pytest.raises(ArtifactError):
        files.read_arrays(pack(tmp_path / "a.npz", members), "test")


def test_other_files_are_refused(tmp_path):
    files.write_arrays(tmp_path / "a.npz", {"kind": "test"}, {"x": np.arange(1000)})
    with pytest.raises(ArtifactError, match="other"):
        files.read_arrays(tmp_path / "a.npz", "other")
    data = (tmp_path / "a.npz").read_bytes()
    for damaged in (b"", data[:100], data[:-10]):
        (tmp_path / "b.npz").write_bytes(damaged)
        with pytest.raises(ArtifactError):
            files.read_arrays(tmp_path / "b.npz", "test")
    with pytest.raises(ArtifactError):
        files.read_arrays(tmp_path / "nothing.npz", "test")
    with pytest.raises(InvalidInputError, match="kind"):
        files.write_arrays(tmp_path / "c.npz", {}, {})


def test_no_flipped_byte_changes_an_array(tmp_path):
    path = tmp_path / "a.npz"
    files.write_arrays(path, {"kind": "test"}, {"x": np.arange(50)})
    data = path.read_bytes()
    n_refused = 0
    for place in range(0, len(data), 3):
        path.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        try:
            _, arrays = files.read_arrays(path, "test")
        except ArtifactError:
            n_refused += 1
        else:  # a byte that means nothing, such as a date
            np.testing.assert_array_equal(arrays["x"], np.arange(50))
    assert n_refused > len(data) / 6
