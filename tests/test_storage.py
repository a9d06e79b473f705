"""Files and folders that are whole or not there."""

import stat

import pytest

from surelabel._storage import atomic_file, atomic_folder


def _names(folder):
    return [path.name for path in folder.iterdir()]


def test_a_file_takes_its_place_at_the_end(tmp_path):
    target = tmp_path / "deep" / "down" / "file.txt"
    with atomic_file(target) as temporary:
        temporary.write_text("new")
        assert not target.exists()
        assert temporary.parent == target.parent
    assert target.read_text() == "new"
    assert _names(target.parent) == ["file.txt"]


def test_an_error_leaves_the_old_file_and_no_part(tmp_path):
    target = tmp_path / "file.txt"
    target.write_text("old")
    with pytest.raises(FileNotFoundError), atomic_file(target) as temporary:  # noqa: PT012
        temporary.write_text("half")
        (tmp_path / "nowhere").read_text()
    assert target.read_text() == "old"
    assert _names(tmp_path) == ["file.txt"]


def test_permissions_are_those_of_any_new_file(tmp_path):
    (tmp_path / "plain").write_text("x")
    with atomic_file(tmp_path / "atomic") as temporary:
        temporary.write_text("x")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "atomic")]
    assert modes[0] == modes[1]


def test_a_folder_takes_the_place_of_an_older_one(tmp_path):
    target = tmp_path / "model"
    for content in ("first", "second"):
        with atomic_folder(target) as temporary:
            (temporary / "part").write_text(content)
            (temporary / "inner").mkdir()
            (temporary / "inner" / "other").write_text(content)
    assert (target / "part").read_text() == (target / "inner" / "other").read_text() == "second"
    assert _names(tmp_path) == ["model"]


def test_an_error_leaves_the_old_folder_and_no_part(tmp_path):
    target = tmp_path / "model"
    with atomic_folder(target) as temporary:
        (temporary / "part").write_text("old")
    with pytest.raises(FileNotFoundError), atomic_folder(target) as temporary:  # noqa: PT012
        (temporary / "part").write_text("half")
        (tmp_path / "nowhere").read_text()
    assert (target / "part").read_text() == "old"
    assert _names(tmp_path) == ["model"]


def test_without_an_exchange_in_one_step_the_folder_is_replaced_too(tmp_path, monkeypatch):
    monkeypatch.setattr("surelabel._storage._exchanged", lambda *_: False)
    test_a_folder_takes_the_place_of_an_older_one(tmp_path)
