import gzip
import re

import pytest

from corpora.sgml_samples import JSON, SGML, pack, unpack
from surelabel.corpora import read_reuters
from surelabel.exceptions import CorpusError, DataWarning


def read(path):
    with pytest.warns(DataWarning) as caught:
        corpus = read_reuters(path)
    assert "give 3 training and 2 test texts with 3 labels; the whole collection gives 7,770" in str(caught[0].message)
    return corpus


@pytest.fixture(params=["archive", "tar", "folder", "nested", "folder of the archive"])
def sgml(request, tmp_path):
    if request.param == "archive":
        return pack(tmp_path / "reuters21578.tar.gz", {**SGML, "README.txt": b"read"})
    if request.param == "folder of the archive":
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "reuters-notes.txt").write_text("not an archive")
        return pack(tmp_path / "data" / "reuters21578.tar.gz", SGML).parent
    if request.param == "tar":
        return pack(tmp_path / "r.tar", {f"./{name}": data for name, data in SGML.items()}, "w")
    return unpack(tmp_path / "r", {("deep/" if request.param == "nested" else "") + k: v for k, v in SGML.items()})


def test_the_official_form(sgml):
    corpus = read(sgml)
    assert corpus.ids == ("1", "2", "3", "14900", "14901")
    # "rare" is in training alone, "new" in the test part alone.
    assert corpus.label_names == ("crude", "earn", "gold")
    assert corpus.label_sets == tuple(
        map(frozenset, [["crude", "earn"], ["gold"], ["earn"], ["crude", "earn"], ["gold"]])
    )
    assert {name: rows.tolist() for name, rows in corpus.parts.items()} == {
        "train": [0, 1, 2],
        "test": [3, 4],
    }
    assert corpus.texts == (
        "OIL <XON> UP\nCrude rose 5 pct & more.",
        "GOLD FIRM",
        "WEEKLY REPORT Reserves....644ü",
        "EARN\nShr 5 cts.",
        "GOLD\nGold fell. Reuters said so.",
    )
    assert "research use only" in corpus.provenance.licence


@pytest.mark.parametrize("form", ["archive", "folder", "full"])
def test_the_package_gives_the_same_ids_and_labels(tmp_path, form):
    if form == "archive":
        path = pack(tmp_path / "p.tgz", JSON)
    else:
        path = unpack(tmp_path, JSON) / ("package/data/full" if form == "full" else "package")
    corpus = read(path)
    official = read(unpack(tmp_path / "sgml", SGML))
    assert corpus.fingerprint(texts=False) == official.fingerprint(texts=False)
    assert [a == b for a, b in zip(corpus.texts, official.texts, strict=True)] == [
        True,
        True,
        False,
        True,
        True,
    ]
    assert corpus.texts[2] == ""


def test_one_file_must_hold_both_parts(tmp_path):
    unpack(tmp_path, SGML)
    with pytest.raises(CorpusError, match="labels that occur in both its training and its test part"):
        read_reuters(tmp_path / "reut2-000.sgm")


def test_a_cut_off_file(tmp_path):
    unpack(tmp_path, {**SGML, "reut2-001.sgm": SGML["reut2-001.sgm"][:-30]})
    with pytest.raises(CorpusError, match=r"'reut2-001.sgm' must hold whole <REUTERS> elements. Got 3 .* and 2"):
        read_reuters(tmp_path)


@pytest.mark.parametrize("cut", [0, 10, 200, -1, -9])
def test_a_damaged_archive(tmp_path, cut):
    path = pack(tmp_path / "r.tar.gz", SGML)
    data = path.read_bytes()
    path.write_bytes(data[:cut])
    with pytest.raises(CorpusError, match=r"Archive 'r.tar.gz' must be a whole tar file"):
        read_reuters(path)


def test_a_flipped_byte(tmp_path):
    path = pack(tmp_path / "r.tar.gz", SGML)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(CorpusError):
        read_reuters(path)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"reuters-000.json": b"{"}, "'reuters-000.json' must be JSON"),
        ({"reuters-000.json": b"[1]"}, "must be a list of records with an id"),
        ({"reuters-000.json": b"\xff\xfe"}, "must be text in utf-8"),
        ({"readme.txt": b""}, "must hold files like 'reut2-000.sgm'"),
        ({"reut2-000.sgm": b""}, "must hold whole <REUTERS> elements"),
    ],
)
def test_what_is_not_reuters(tmp_path, files, message):
    with pytest.raises(CorpusError, match=re.escape(message)):
        read_reuters(unpack(tmp_path / "x", files))


def test_no_such_path(tmp_path):
    with pytest.raises(CorpusError, match=r"must exist. Got '.*nowhere.tar.gz'"):
        read_reuters(tmp_path / "nowhere.tar.gz")


def test_a_file_that_is_no_archive(tmp_path):
    path = tmp_path / "page.tar.gz"
    path.write_bytes(gzip.compress(b"<html>not found</html>"))
    with pytest.raises(CorpusError, match="must be a whole tar file"):
        read_reuters(path)
