import json
import re

import pytest

from corpora.sgml_samples import unpack
from surelabel.corpora import load, read_aapd, read_ctdc, read_goemotions
from surelabel.exceptions import CorpusError, DataWarning, InvalidInputError

AAPD = {
    "train": [("graphs of code", ["cs.it", "math.it"]), ("learning", ["cs.lg"])],
    "val": [("codes", ["cs.it"])],
    "test": [("nets", ["cs.lg", "cs.it"])],
}
NAMES = ["cs.it", "math.it", "cs.lg"]


def aapd(folder, form):
    files = {}
    for part, rows in AAPD.items():
        if form == "authors":
            files[f"text_{part}"] = "".join(f"{text}\n" for text, _ in rows)
            files[f"label_{part}"] = "".join(f"{' '.join(labels)}\n" for _, labels in rows)
        elif form == "hedwig":
            bits = ["".join("01"[name in labels] for name in NAMES) for _, labels in rows]
            name = "dev" if part == "val" else part
            files[f"{name}.tsv"] = "".join(f"{each}\t{text}\n" for each, (text, _) in zip(bits, rows, strict=True))
        else:
            files[f"{part}.json"] = json.dumps([{"text": text, "label": labels} for text, labels in rows])
    if form != "authors":
        files["labels.json"] = json.dumps({name: place for place, name in enumerate(NAMES)})
    return unpack(folder / form, {name: text.encode() for name, text in files.items()})


@pytest.mark.parametrize("form", ["authors", "hedwig", "json"])
def test_aapd_keeps_its_parts(tmp_path, form):
    corpus = read_aapd(aapd(tmp_path, form))
    assert corpus.texts == ("graphs of code", "learning", "codes", "nets")
    assert corpus.label_sets == tuple(frozenset(labels) for rows in AAPD.values() for _, labels in rows)
    assert {name: rows.tolist() for name, rows in corpus.parts.items()} == {
        "train": [0, 1],
        "validation": [2],
        "test": [3],
    }
    assert corpus.ids == ("train-0", "train-1", "validation-0", "test-0")
    assert sorted(corpus.label_names) == sorted(NAMES)


def test_aapd_label_names_of_hedwig(tmp_path):
    folder = aapd(tmp_path, "hedwig")
    (folder / "labels.json").unlink()
    assert read_aapd(folder).label_names == ("label-00", "label-01", "label-02")
    assert read_aapd(folder, label_names=list("abc")).label_sets[0] == frozenset("ab")


def test_aapd_without_training_part(tmp_path):
    folder = aapd(tmp_path, "json")
    (folder / "train.json").unlink()
    with pytest.warns(DataWarning, match=r"'aapd' has no training part here, only \['validation', 'test'\]"):
        corpus = load("aapd", path=folder)
    assert list(corpus.parts) == ["validation", "test"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"other.txt": b""}, "must hold text_train and label_train"),
        ({"text_train": b"a\n"}, "'text_train' must come with 'label_train'"),
        (
            {"text_train": b"a\nb\n", "label_train": b"x\n"},
            "'label_train' must have a line for each of the 2",
        ),
        ({"train.tsv": b"01\ta\n0x\tb\n"}, "Line 2 of AAPD's 'train.tsv' must be 2 digits 0 or 1"),
        ({"train.tsv": b"01\ta\n011\tb\n"}, "Line 2 of AAPD's 'train.tsv' must be 2 digits"),
        ({"train.json": b"{}"}, "Record 1 of AAPD's 'train.json' must be an object"),
        ({"train.json": b"["}, "'train.json' must be JSON"),
        ({"train.json": b"[]", "labels.json": b"[]"}, "'labels.json' of AAPD must be an object"),
        (
            {"text_train": b"\xff\n", "label_train": b"x\n"},
            "'text_train' must be text in utf-8. Got byte 0xff",
        ),
    ],
)
def test_bad_aapd(tmp_path, files, message):
    with pytest.raises(CorpusError, match=re.escape(message)):
        read_aapd(unpack(tmp_path / "x", files))


def ctdc(folder, names=None):
    labels = ["kul_nab", "pol", "spo_kul", "pol_spo", "nab"]
    main = [f"{number:05d}_{labels[number % 5]}.txt" for number in range(1, 13)]
    files = {f"main/{name}": f"Článek {name}\n".encode() for name in names or main}
    return unpack(folder / "ctdc", {**files, "dev/00001_pol.txt": b"dev", "main/00001_x.lem": b"skip"})


def test_ctdc_folds(tmp_path):
    folder = ctdc(tmp_path)
    tests = []
    for fold in range(1, 6):
        corpus = read_ctdc(folder, fold=fold)
        assert len(corpus) == 13
        assert corpus.part("validation").ids == ("dev-00001",)
        tests.append(set(corpus.part("test").ids))
        assert set(corpus.part("train").ids).isdisjoint(tests[-1])
    assert sorted(map(len, tests)) == [2, 2, 2, 3, 3]
    assert len(set().union(*tests)) == 12
    assert tests[0] == {"main-00001", "main-00006", "main-00011"}


def test_ctdc_labels_and_texts(tmp_path):
    corpus = read_ctdc(ctdc(tmp_path))
    assert corpus.label_names == ("kul", "nab", "pol", "spo")
    assert corpus.label_sets[1] == frozenset({"spo", "kul"})
    assert corpus.texts[1] == "Článek 00002_spo_kul.txt"


def test_ctdc_folds_as_folders(tmp_path):
    files = {f"main/fold{n}/{n:05d}_{'pol' if n % 2 else 'kul'}.txt": b"x" for n in range(1, 6)}
    with pytest.warns(DataWarning):
        corpus = load("ctdc", path=unpack(tmp_path / "c", {**files, "empty.lem": b""}), fold=3, calibration=3)
    assert corpus.part("test").ids == ("main-00003",)
    assert "validation" not in corpus.parts


def test_bad_ctdc(tmp_path):
    with pytest.raises(CorpusError, match=r"like '00046_kul_nab_mag.txt'. Got 'readme.txt'"):
        read_ctdc(ctdc(tmp_path, ["readme.txt"]))
    with pytest.raises(CorpusError, match="Got no such file"):
        read_ctdc(unpack(tmp_path / "e", {"dev/00001_pol.txt": b""}))
    for fold in (0, 6, "1", True):
        with pytest.raises(InvalidInputError, match="'fold' parameter of ctdc must be a whole number from 1 to 5"):
            read_ctdc(tmp_path, fold=fold)
    folder = unpack(tmp_path / "l", {"00001_pol.txt": "žluť".encode("cp1250"), "00002_kul.txt": b"a"})
    with pytest.raises(CorpusError, match=r"'00001_pol.txt' must be text in utf-8"):
        read_ctdc(folder)
    assert read_ctdc(folder, encoding="cp1250").texts[0] == "žluť"


def goemotions(folder, **changes):
    files = {
        "train.tsv": 'I "love it\t18\ta\nhm\t27\tb\nwow, no\t3,26\tc\n',
        "dev.tsv": "ok\t27\td\n",
        "test.tsv": "love\t18\te\n",
        **changes,
    }
    return unpack(folder / "g", {name: text.encode() for name, text in files.items()})


def test_goemotions(tmp_path):
    corpus = load("goemotions", path=goemotions(tmp_path), calibration=0)
    assert repr(corpus) == "Corpus 'goemotions': 5 texts, 28 labels (train 3, validation 1, test 1)"
    assert corpus.texts[0] == 'I "love it'
    assert corpus.label_sets[2] == frozenset({"annoyance", "surprise"})
    assert corpus.ids == ("a", "b", "c", "d", "e")


def test_goemotions_with_names(tmp_path):
    folder = goemotions(tmp_path, **{"labels.txt": "\n".join(f"e{n}" for n in range(28))})
    assert read_goemotions(folder).label_sets[0] == frozenset({"e18"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a\t28\tx", "Line 1 of 'train.tsv' must have label numbers from 0 to 27"),
        ("a\t1,b\tx", "Got '1,b' instead"),
        ("a\t\tx", "Got '' instead"),
        ("a\t1", "Got 2 cells instead"),
    ],
)
def test_bad_goemotions(tmp_path, line, message):
    with pytest.raises(CorpusError, match=re.escape(message)):
        read_goemotions(goemotions(tmp_path, **{"train.tsv": line + "\n"}))


def test_no_goemotions(tmp_path):
    with pytest.raises(CorpusError, match="must be a folder with"):
        read_goemotions(tmp_path)
