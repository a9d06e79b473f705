"""Bad input: one sentence that says what to do, the right exit code, no traceback, nothing left behind."""

import json

import pytest

OWN = ("--text", "body", "--labels", "tags", "--separator", ";")


@pytest.fixture
def files(tmp_path):
    """Return a folder with files that are wrong in one way each."""
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "good.txt").write_text("oil rose\n")
    (tmp_path / "latin.txt").write_bytes(b"bl\xe9\n")
    (tmp_path / "latin.csv").write_bytes(b"text,labels\nbl\xe9,x\n")
    (tmp_path / "table.csv").write_text("a,b\nx,y\n")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "few.csv").write_text("text,labels\noil,x\ngold,y\n")
    (tmp_path / "bare.csv").write_text("The price of wheat rose again today.,wheat\n")
    (tmp_path / "book.csv").write_bytes(b"PK\x03\x04[Content_Types].xml xl/workbook.xml")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("cat")
    return tmp_path


CASES = [
    # command, exit code, part of the message
    (("predict", "{model}", "{files}/none.txt"), 3, "does not exist"),
    (("predict", "{model}", "{files}/empty.txt"), 3, "at least one text"),
    (("predict", "{model}", "{files}/latin.txt"), 3, "--encoding latin-1"),
    (("predict", "{model}", "{files}/table.csv"), 3, "It has 'a', 'b': name the text column with --text"),
    (("predict", "{model}", "{files}/photos/cat.jpg"), 2, "must end in one of .txt"),
    (("predict", "{model}", "{files}/photos"), 2, "a data set needs a folder for its answers"),
    (("predict", "{model}", "{files}/good.txt", "--significance", "0"), 2, "must be in (0, 1)"),
    (("predict", "{model}", "{files}/good.txt", "--significance", "1.5"), 2, "must be in (0, 1)"),
    (("predict", "{model}", "{files}/good.txt", "--significance", "five"), 2, "number in (0, 1)"),
    (("predict", "{model}", "{files}/good.txt", "-s", "0.1", "--confidence-level", "0.9"), 2, "Exactly one of"),
    (("predict", "{model}", "{files}/good.txt", "--top", "-1"), 2, "top"),
    (("predict", "{model}", "{files}/good.txt", "--encoding", "klingon"), 2, "text encoding"),
    (("predict", "{model}", "{files}/good.txt", "--out", "{files}/a.docx"), 2, "must end in one of .jsonl"),
    (("predict", "{model}", "{files}/good.txt", "--out", "{files}/photos"), 2, "must end in"),
    (("predict", "{model}", "{files}/good.txt", "--resume"), 2, "--resume requires --out"),
    (("predict", "{model}", "{files}/book.csv"), 3, "It is an Excel workbook (.xlsx); let its name end in .xlsx"),
    (("predict", "{model}", "{files}/bare.csv"), 3, "Its first line looks like data"),
    (("predict", "{model}", "{files}/good.txt", "--format", "parquet"), 2, "parquet needs a file"),
    (("predict", "{model}", "{files}/good.txt", "--format", "csv", "--json"), 2, "exclude each other"),
    (("predict", "{model}", "{files}/good.txt", "--format", "blocks", "--out", "{files}/a.csv"), 2, "for a terminal"),
    (("predict", "{model}", "{files}/good.txt", "--format", "jsonl", "--out", "{files}/a.csv"), 2, "must be csv"),
    (("predict", "{model}", "{files}/good.txt", "--out", "memory://a/a.csv"), 2, "a file on this machine"),
    (("predict", "{model}", "{files}/photos", "--out", "{files}/a.csv"), 2, "go into a folder"),
    (("predict", "{model}", "-", "--out", "{files}/a", "--workers", "2"), 2, "cannot be divided"),
    (("predict", "{model}", "{files}/good.txt", "--p-value", "klingon"), 2, "labels of the model"),
    (("train", "{files}/bare.csv", "--out", "{files}/m"), 3, "has the file no headings?"),
    (("train", "{files}/book.csv", "--out", "{files}/m"), 3, "It is an Excel workbook"),
    (("predict", "{model}", "-", "--out", "{files}/a.csv", "--resume"), 2, "standard input cannot be read"),
    (("predict", "{files}/nowhere", "{files}/good.txt"), 4, "There is no bundle at"),
    (("predict", "{files}/photos", "{files}/good.txt"), 4, "is not a bundle"),
    (("predict", "{model}"), 2, "Missing argument 'INPUT' (see surelabel predict --help)."),
    (("train", "roiters", "--out", "{files}/m"), 3, "existing file"),
    (("train", "{files}/none.csv", "--out", "{files}/m"), 3, "existing file"),
    (("train", "{files}/none.csv", "--calibration", "1.5", "--out", "{files}/m"), 2, "a share of them below 1"),
    (("train", "{files}/none.csv", "--test", "many", "--out", "{files}/m"), 2, "a number of texts"),
    (("train", "synthetic", "--calibration", "99", "--out", "{files}/m"), 2, "fixed sizes"),
    (("predict", "{model}", "printer"), 2, "must end in one of .txt"),
    (("train", "{files}/empty.csv", "--out", "{files}/m"), 3, "empty file"),
    (("train", "{files}/table.csv", "--out", "{files}/m"), 3, "'text' column"),
    (("train", "{files}/few.csv", "--out", "{files}/m"), 3, "few"),
    (("train", "{files}/latin.csv", "--out", "{files}/m"), 3, "must be text in utf-8"),
    (("train", "synthetic", "--out", "{files}/photos"), 2, "something else than a bundle"),
    (("train", "synthetic", "--out", "{files}/good.txt"), 2, "is a file"),
    (("train", "synthetic", "--out", "{files}/m", "--measure", "chi"), 2, "A measure must be one of"),
    (("train", "synthetic", "--out", "{files}/m", "--measure", "L0.5"), 2, "must be one of"),
    (("train", "synthetic", "--out", "{files}/m", "--classifier", "forest"), 2, "forest"),
    (("train", "synthetic", "--out", "{files}/m", "--setting", "epochs"), 2, "NAME=VALUE"),
    (("train", "synthetic", "--out", "{files}/m", "--setting", "depth=3"), 2, "has no setting 'depth'"),
    (("train", "synthetic"), 2, "Missing option '--out'"),
    (("calibrate", "{model}", "{files}/few.csv"), 2, "must be among the model's 8"),
    (("calibrate", "{model}", "synthetic", "--out", "{files}/photos"), 2, "something else than a bundle"),
    (("calibrate", "{trained}", "{own}", *OWN, "--part", "train", "--out", "{files}/m"), 2, "was trained on"),
    (("calibrate", "{trained}", "{own}", *OWN, "--seed", "5", "--out", "{files}/m"), 2, "Use seed 0"),
    (("calibrate", "{trained}", "{own}", *OWN, "--part", "third", "--out", "{files}/m"), 2, "trained on"),
    (("evaluate", "{model}", "{files}/none.csv"), 3, "existing file"),
    (("evaluate", "{files}/nowhere", "synthetic"), 4, "There is no bundle"),
    (("data", "get", "roiters"), 2, "expected one of"),
    (("data", "stats", "roiters"), 3, "existing file"),
    (("reproduce", "--corpus", "roiters"), 2, "must be one of"),
    (("reproduce", "--measure", "chi"), 2, "expected some of"),
    (("demo", "--out", "{files}/photos"), 2, "something else than a bundle"),
    (("fly",), 2, "No such command 'fly'"),
]


@pytest.mark.parametrize(("command", "code", "message"), CASES, ids=[" ".join(case[0]) for case in CASES])
def test_an_error_is_one_sentence(run, files, model, trained, own_file, command, code, message):
    before = sorted(path.name for path in files.rglob("*"))
    places = {"files": files, "model": model, "trained": trained, "own": own_file}
    found = run(*(part.format(**places) for part in command))
    assert (found.code, found.out) == (code, ""), found
    assert message in found.err
    assert found.err.splitlines()[-1].startswith("surelabel: ")
    assert "Traceback" not in found.err
    assert sorted(path.name for path in files.rglob("*")) == before


def test_debug_shows_where(run, tmp_path):
    found = run("predict", tmp_path, "x.txt", "--debug")
    assert "Traceback" in found.err
    assert "ArtifactError" in found.err
    assert found.err.splitlines()[-1].startswith("surelabel: ")


def test_an_unexpected_error_is_one_sentence_too(run, model, tmp_path, monkeypatch):
    monkeypatch.setattr("surelabel.models.load_bundle", lambda _: 1 / 0)
    (tmp_path / "a.txt").write_text("oil\n")
    found = run("predict", model, tmp_path / "a.txt")
    assert found.code == 1
    assert (
        found.err
        == "surelabel: an unexpected ZeroDivisionError: division by zero. Run again with --debug and tell us.\n"
    )


@pytest.mark.parametrize(("error", "code"), [(KeyboardInterrupt, 130), (BrokenPipeError, 141), (PermissionError, 1)])
def test_interruptions(run, model, tmp_path, monkeypatch, error, code):
    def stop(_):
        raise error("no access")

    monkeypatch.setattr("surelabel.models.load_bundle", stop)
    monkeypatch.setattr("os.dup2", lambda *_: None)
    (tmp_path / "a.txt").write_text("oil\n")
    found = run("predict", model, tmp_path / "a.txt")
    assert found.code == code
    assert "Traceback" not in found.err
    assert found.err == "" if code == 141 else found.err.startswith("surelabel: ")


def test_a_changed_model_is_refused(run, model, tmp_path):
    import shutil

    shutil.copytree(model, tmp_path / "model")
    card = tmp_path / "model" / "README.md"
    card.write_text(card.read_text() + "!")
    (tmp_path / "a.txt").write_text("oil\n")
    found = run("predict", tmp_path / "model", tmp_path / "a.txt")
    assert found.code == 4
    assert "README.md is not what was written" in found.err


def test_an_interrupted_run_is_told_where_it_is_dropped(run, model, tmp_path):
    (tmp_path / "a.txt").write_text("oil\n")
    (tmp_path / "a.csv.part").write_text("")
    (tmp_path / "a.csv.part.json").write_text(json.dumps({"rows": 0}))
    found = run("predict", model, tmp_path / "a.txt", "--out", tmp_path / "a.csv")
    assert found.code == 0
    assert "--resume would have continued it" in found.err
