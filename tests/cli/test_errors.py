"""Bad input: one line that says what to do, the right exit code, no traceback, nothing left behind."""

import shutil
import subprocess
import sys

import pytest

from tickets import OWN


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
    (tmp_path / "one.csv").write_text("text,labels\noil,x\ngold,x\n")
    (tmp_path / "untagged.csv").write_text("text,labels\noil,\ngold,\n")
    (tmp_path / "bare.csv").write_text("The price of wheat rose again today.,wheat\n")
    (tmp_path / "book.csv").write_bytes(b"PK\x03\x04[Content_Types].xml xl/workbook.xml")
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_text("cat")
    return tmp_path


GOOD = ("predict", "{model}", "{files}/good.txt")
OUT = ("--out", "{files}/m")
CASES = [
    # command, exit code, the word that matters
    (("predict", "{model}", "{files}/none.txt"), 3, "none.txt"),
    (("predict", "{model}", "{files}/empty.txt"), 3, "empty.txt"),
    (("predict", "{model}", "{files}/latin.txt"), 3, "encoding"),
    (("predict", "{model}", "{files}/table.csv"), 3, "column 'text'"),
    (("predict", "{model}", "{files}/photos/cat.jpg"), 2, "cat.jpg"),
    (("predict", "{model}", "{files}/photos"), 2, "--out"),
    (("predict", "{model}", "{files}/bare.csv"), 3, "bare.csv"),
    (("predict", "{model}", "{files}/book.csv"), 3, "xlsx"),
    (("predict", "{model}", "printer"), 2, "--text printer"),
    (("predict", "{model}"), 2, "FILE"),
    (("predict", "{model}", "two words", "--id", "number"), 2, "--id"),
    (("predict", "{model}", "two words", "--text", "body"), 2, "--text"),
    (("predict", "{model}", ""), 2, "FILE"),
    (("predict", "{model}", "two words", "--out", "{files}/a.csv"), 2, "--out"),
    (("predict", "{files}/nowhere", "{files}/good.txt"), 4, "nowhere"),
    (("predict", "{files}/photos", "{files}/good.txt"), 4, "photos"),
    ((*GOOD, "--significance", "0"), 2, "significance"),
    ((*GOOD, "--significance", "1.5"), 2, "1.5"),
    ((*GOOD, "--significance", "five"), 2, "five"),
    ((*GOOD, "--significance", "1e-999999999"), 2, "significance"),
    ((*GOOD, "--assurance", "0.95"), 2, "--significance"),
    ((*GOOD, "--top", "-1"), 2, "top"),
    ((*GOOD, "--workers", "2"), 2, "--workers"),
    ((*GOOD, "--resume"), 2, "--resume"),
    ((*GOOD, "--encoding", "klingon"), 2, "klingon"),
    ((*GOOD, "--out", "{files}/a.docx"), 2, ".jsonl"),
    ((*GOOD, "--out", "{files}/photos"), 2, "photos"),
    ((*GOOD, "--out", "{files}/good.txt", "--format", "csv"), 2, "good.txt"),
    ((*GOOD, "--out", "{model}/answers.csv"), 2, "model"),
    (("train", "{own}", *OWN, "--out", "{model}/deep/new"), 2, "inside the model"),
    (("train", "{own}", *OWN, "--out", "{own}"), 2, "tickets.csv"),
    (("calibrate", "{model}", "--max-wrong", "0.1", "--out", "{model}/new"), 2, "inside the model"),
    (("evaluate", "{model}", "{own}", *OWN, "--report", "{model}/june.html"), 2, "inside the model"),
    (("evaluate", "{model}", "{own}", *OWN, "--report", "{own}"), 2, "is the input"),
    (("watch", "{model}", "{own}", *OWN, "--plot", "{own}"), 2, "is the input"),
    (("watch", "{model}", "{own}", *OWN, "--state", "{model}/watch.npz"), 2, "inside the model"),
    (("review", "{model}", "{own}", "--text", "body", "--store", "{model}/s.sqlite"), 2, "inside the model"),
    ((*GOOD, "--format", "parquet"), 2, "--out"),
    ((*GOOD, "--format", "cards", "--out", "{files}/a.csv"), 2, "terminal"),
    ((*GOOD, "--group", "mail"), 2, "group"),
    (("train", "{files}/none.csv", *OUT), 3, "none.csv"),
    (("train", "roiters", *OUT), 3, "roiters"),
    (("train", "{files}/empty.csv", *OUT), 3, "empty.csv"),
    (("train", "{files}/table.csv", *OUT), 3, "column 'text'"),
    (("train", "{files}/few.csv", *OUT), 3, "few"),
    (("train", "{files}/one.csv", *OUT), 3, "two labels"),
    (("train", "{files}/untagged.csv", *OUT), 3, "one label"),
    (("train", "{files}/latin.csv", *OUT), 3, "encoding"),
    (("train", "{files}/bare.csv", *OUT), 3, "bare.csv"),
    (("train", "{files}/book.csv", *OUT), 3, "xlsx"),
    (("train", "{own}", "--text", "tags", "--labels", "tags", *OUT), 2, "tags"),
    (("train", "{own}", *OWN, "--separator", "", *OUT), 2, "separator"),
    (("train", "{own}", *OWN, "--encoding", "rot13", *OUT), 2, "rot13"),
    (("train", "{own}", *OWN, "--by", "planet", *OUT), 3, "planet"),
    (("train", "{own}", *OWN, "--max-wrong", "5", *OUT), 2, "max_wrong"),
    (("train", "{own}", *OWN, "--max-missed", "none", *OUT), 2, "none"),
    (("train", "{own}", *OWN, "--setting", "calibration=1.5", *OUT), 2, "calibration"),
    (("train", "{own}", *OWN, "--language", "en", *OUT), 2, "--vocabulary"),
    (("train", "{own}", *OWN, "--url", "http://localhost:1", *OUT), 2, "--tagger"),
    (("train", "{own}", *OWN, "--tagger", "annif", "--url", "http://localhost:1", *OUT), 2, "--project"),
    (("train", "{own}", *OWN, "--tagger", "http", *OUT), 2, "--url"),
    (("train", "{own}", *OWN, "--tagger", "http", "--classifier", "linear", *OUT), 2, "--classifier"),
    (("train", "{own}", *OWN, "--scores", "ranks", *OUT), 3, "ranks"),
    (("train", "synthetic", "--text", "body", *OUT), 2, "text"),
    (("train", "synthetic", "--separator", ";", *OUT), 2, "separator"),
    (("train", "synthetic", "--out", "{files}/photos"), 2, "photos"),
    (("train", "synthetic", "--out", "{files}/good.txt"), 2, "good.txt"),
    (("train", "synthetic", "--measure", "chi", *OUT), 2, "chi"),
    (("train", "synthetic", "--classifier", "forest", *OUT), 2, "forest"),
    (("train", "synthetic", "--best-guess", "best", *OUT), 2, "best"),
    (("train", "synthetic", "--setting", "epochs", *OUT), 2, "NAME=VALUE"),
    (("train", "synthetic", "--setting", "depth=3", *OUT), 2, "depth"),
    (("train", "synthetic"), 2, "--out"),
    (("calibrate", "{model}"), 2, "FILE"),
    (("calibrate", "{model}", "--add"), 2, "--add"),
    (("calibrate", "{model}", "{own}", *OWN, "--add", "--max-wrong", "0.1"), 2, "--max-wrong"),
    (("calibrate", "{model}", "--max-wrong", "0.1", "--out", "{files}/photos"), 2, "photos"),
    (("evaluate", "{model}", "{files}/none.csv"), 3, "none.csv"),
    (("evaluate", "{files}/nowhere", "synthetic"), 4, "nowhere"),
    (("data", "get", "roiters"), 2, "roiters"),
    (("data", "stats", "roiters"), 3, "roiters"),
    (("review", "{model}"), 2, "--store"),
    (("review", "{model}", "--store", "{files}/s.sqlite", "--id", "number"), 2, "FILE"),
    (("reviews", "summary", "{files}/s.sqlite"), 2, "s.sqlite"),
    (("serve", "{model}", "--host", "0.0.0.0"), 2, "SURELABEL_TOKEN"),
    (("learn", "{model}", "{files}/s.sqlite", *OUT), 2, "s.sqlite"),
    (("learn", "{model}", "{files}/s.sqlite", *OUT, "--switch", "--undo"), 2, "--undo"),
    (("reproduce", "--corpus", "roiters"), 2, "roiters"),
    (("reproduce", "--measure", "chi"), 2, "chi"),
    (("demo", "--no-download", "--out", "{files}/photos"), 2, "photos"),
    (("fly",), 2, "fly"),
]


@pytest.mark.parametrize(("command", "code", "word"), CASES, ids=[" ".join(case[0]) for case in CASES])
def test_an_error_is_one_line(run, files, model, own_file, command, code, word):
    before = sorted(path.name for path in files.rglob("*"))
    places = {"files": files, "model": model, "own": own_file}
    found = run(*(part.format(**places) for part in command))
    assert (found.code, found.out) == (code, ""), found
    last = found.err.splitlines()[-1]
    assert last.startswith("surelabel: ")
    assert word in last
    assert "Traceback" not in found.err
    assert sorted(path.name for path in files.rglob("*")) == before


def test_debug_shows_where_before_and_behind_the_command(run, tmp_path):
    for command in (("predict", tmp_path, "x.txt", "--debug"), ("--debug", "predict", tmp_path, "x.txt")):
        found = run(*command)
        assert "Traceback" in found.err
        assert "Error" in found.err
        assert found.err.splitlines()[-1].startswith("surelabel: ")


@pytest.mark.parametrize(
    ("error", "code"), [(ZeroDivisionError, 1), (KeyboardInterrupt, 130), (BrokenPipeError, 141), (PermissionError, 1)]
)
def test_unexpected_errors_and_interruptions(run, model, tmp_path, monkeypatch, error, code):
    def stop(_):
        raise error("no access")

    monkeypatch.setattr("surelabel.models.load_bundle", stop)
    monkeypatch.setattr("os.dup2", lambda *_: None)
    (tmp_path / "a.txt").write_text("oil\n")
    found = run("predict", model, tmp_path / "a.txt")
    assert found.code == code
    assert len(found.err.splitlines()) == (0 if code == 141 else 1)
    assert found.err == "" or found.err.startswith("surelabel: ")


def test_a_changed_model_is_refused(run, model, tmp_path):
    shutil.copytree(model, tmp_path / "model")
    card = tmp_path / "model" / "README.md"
    card.write_text(card.read_text() + "!")
    found = run("predict", tmp_path / "model", "two words")
    assert found.code == 4
    assert "README.md" in found.err


def test_rows_that_cannot_be_read_are_skipped_and_listed_on_request(run, model, tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text('{"text": "printer jam"}\n{"text": 5}\n{"text": "invoice due"}\n')
    assert run("predict", model, path).code == 3
    found = run("predict", model, path, "--on-error", "skip", "--out", tmp_path / "a.jsonl")
    assert found.code == 0
    assert "1 rows were skipped" in found.out
    listed = (tmp_path / "a.jsonl.skipped.jsonl").read_text()
    assert '"row": 2' in listed


def test_nothing_in_a_text_or_a_name_controls_a_terminal(ok, run, model, tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text('{"text": "printer \\u001b[2J jam \\u202e", "id": "\\u001b[1m"}\n')
    for printed in (
        ok("predict", model, path, "--format", "cards"),
        ok("predict", model, "--text", "printer \x1b[2J jam"),
        run("predict", model, tmp_path / "\x1b[2J.txt").err,
    ):
        assert "\x1b" not in printed
        assert "\u202e" not in printed


def test_a_closed_pipe_is_no_error(model, new_file):
    command = f"{sys.executable} -m surelabel predict {model} {new_file} --text body | head -n 1"
    found = subprocess.run(command, shell=True, capture_output=True, text=True, check=True)
    assert found.stdout.startswith('{"row":1')
    assert "Traceback" not in found.stderr
