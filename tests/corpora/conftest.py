import os
from pathlib import Path

import pytest


def _data_folder() -> Path:
    named = os.environ.get("SURELABEL_DATA")
    return Path(named) if named else Path(__file__).parents[2].parent / "shared" / "data"


@pytest.fixture(scope="session")
def data():
    """A function that returns a file or folder of the data folder, or skips the test with a reason."""
    folder = _data_folder()

    def find(name: str) -> Path:
        if not (folder / name).exists():
            pytest.skip(f"{name} is not in {folder}; SURELABEL_DATA names another folder")
        return folder / name

    return find


@pytest.fixture
def empty_places(tmp_path, monkeypatch):
    """No data folder, and a cache folder of the test's own."""
    monkeypatch.delenv("SURELABEL_DATA", raising=False)
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
