"""Files and folders that are whole or not there."""

import signal
import stat
import subprocess
import sys

import pytest

from surelabel._core import storage as _storage
from surelabel._core.storage import atomic_file, atomic_folder, clean_up

# Begins to write a file or folder, says so, and waits to be killed.
WRITER = """
import sys, time
from surelabel._core import storage as _storage
if sys.argv[1] == "aside":
    _storage._exchanged = lambda *_: False
    replace = _storage.Path.replace
    def slow(self, target):
        if self.suffix == ".part":
            print("there", flush=True)
            time.sleep(60)
        return replace(self, target)
    _storage.Path.replace = slow
write = _storage.atomic_file if sys.argv[1] == "file" else _storage.atomic_folder
with write(sys.argv[2]) as temporary:
    if sys.argv[1] == "file":
        temporary.write_text("half")
    else:
        (temporary / "part").write_text("half")
    if sys.argv[1] != "aside":
        print("there", flush=True)
        time.sleep(60)
"""


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
    monkeypatch.setattr("surelabel._core.storage._exchanged", lambda *_: False)
    test_a_folder_takes_the_place_of_an_older_one(tmp_path)


@pytest.fixture
def writer(tmp_path):
    """Start a process that writes `model`, up to where a kill would leave something."""
    running = []

    def start(kind):
        command = [sys.executable, "-c", WRITER, kind, str(tmp_path / "model")]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        assert running[-1].stdout.readline() == "there\n"
        return running[-1]

    yield start
    for process in running:
        _kill(process)


def _kill(process):
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
        process.communicate()


def _write(kind, target):
    if kind == "file":
        with atomic_file(target) as temporary:
            temporary.write_text("new")
    else:
        with atomic_folder(target) as temporary:
            (temporary / "part").write_text("new")


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_run_left_is_removed_by_the_next_and_what_a_living_one_writes_is_not(tmp_path, writer, kind):
    dead, living = writer(kind), writer(kind)
    left = set(_names(tmp_path))
    assert len(left) == 2
    _write(kind, tmp_path / "model")
    assert set(_names(tmp_path)) == {*left, "model"}  # both live
    _kill(dead)
    clean_up(tmp_path / "model")
    assert len(set(_names(tmp_path)) & left) == 1
    _kill(living)
    _write(kind, tmp_path / "model")
    assert _names(tmp_path) == ["model"]


def test_files_of_others_are_not_touched(tmp_path):
    others = (
        ".model.part",
        ".model.abc.part",
        ".model.v2.abcdefgh.part",
        "model.abcdefgh.part",
        ".model.ABCDEFGH.part",
    )
    for name in others:
        (tmp_path / name).write_text("x")
    (tmp_path / "elsewhere").write_text("x")
    (tmp_path / ".model.abcdefgh.part").symlink_to(tmp_path / "elsewhere")
    clean_up(tmp_path / "model")
    assert set(_names(tmp_path)) == {*others, "elsewhere", ".model.abcdefgh.part"}
    clean_up(tmp_path / "nowhere" / "model")


def test_an_old_folder_that_was_moved_aside_comes_back(tmp_path, writer):
    with atomic_folder(tmp_path / "model") as temporary:
        (temporary / "part").write_text("old")
    process = writer("aside")
    assert not (tmp_path / "model").exists()
    clean_up(tmp_path / "model")
    assert not (tmp_path / "model").exists()  # its process lives
    _kill(process)
    clean_up(tmp_path / "model")
    assert (tmp_path / "model" / "part").read_text() == "old"
    assert _names(tmp_path) == ["model"]


def test_where_there_are_no_locks_nothing_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(_storage, "_lock", lambda path: None)
    (tmp_path / ".model.abcdefgh.part").write_text("x")
    _write("file", tmp_path / "model")
    assert set(_names(tmp_path)) == {"model", ".model.abcdefgh.part"}


def test_a_new_file_that_was_taken_for_a_dead_runs_is_made_again(tmp_path, monkeypatch):
    lock, calls = _storage._lock, []

    def late(path):
        calls.append(path)
        if len(calls) == 1:
            path.unlink()  # cleaned up by another process before it is locked
        elif len(calls) == 2:
            raise BlockingIOError
        descriptor = lock(path)
        if len(calls) == 3:
            path.unlink()
        return descriptor

    monkeypatch.setattr(_storage, "_lock", late)
    with atomic_file(tmp_path / "model", clean=False) as temporary:
        assert temporary == calls[3]
        temporary.write_text("new")
    assert (tmp_path / "model").read_text() == "new"
    assert set(_names(tmp_path)) == {"model", calls[1].name}  # stays to whoever has locked it
