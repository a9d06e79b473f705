"""`surelabel watch`: with labels, without them, and with a level that follows the errors."""

import csv
import json

import pytest

from bundle_cases import small_bundle
from surelabel import corpora


@pytest.fixture(scope="module")
def texts():
    """Return new texts with the labels of the small model, and their label-sets."""
    whole = corpora.load("synthetic", n_texts=400, n_labels=8, seed=3, test=0, validation=0, calibration=0)
    names = set(small_bundle().label_names)
    return [
        (text, sorted(labels)) for text, labels in zip(whole.texts, whole.label_sets, strict=True) if labels <= names
    ]


def written(path, headings, rows):
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([headings, *rows])
    return path


def test_without_labels_a_file_needs_no_label_column(run, model, texts, tmp_path):
    path = tmp_path / "new.txt"
    path.write_text("\n".join(text.replace("\n", " ") for text, _ in texts))
    plain = run("watch", model, path, "--unlabelled", "--json")
    assert plain.code in (0, 7), plain.err
    assert json.loads(plain.out)["n_seen"] == len(texts)
    table = written(tmp_path / "new.csv", ["number", "body"], [(k, text) for k, (text, _) in enumerate(texts)])
    again = run("watch", model, table, "--text", "body", "--unlabelled", "--json")
    assert json.loads(again.out) == json.loads(plain.out)
    assert run("watch", model, table, "--text", "body").code == 3  # labels are needed without --unlabelled


def test_without_labels_texts_of_training_do_not_count(run, tmp_path):
    from surelabel.models import TrainingSettings, train_to_folder

    corpus = corpora.load("synthetic", n_texts=300, n_labels=5)
    folder = tmp_path / "model"
    train_to_folder(corpus, folder, TrainingSettings(compared={}))
    rows = [(text.replace("\n", " "),) for text in corpus.texts]
    made = run("watch", folder, written(tmp_path / "all.csv", ["text"], rows), "--unlabelled", "--json")
    assert json.loads(made.out)["n_seen"] < len(corpus)
    assert "are left out" in made.err


def test_adapting_settles_late_out_of_order_and_never(run, model, texts, tmp_path):
    some = texts[:60]
    first = [(f"t{k}", text, "") for k, (text, _) in enumerate(some)]
    late = [(f"t{k}", "", ",".join(labels)) for k, (_, labels) in enumerate(some) if k % 3 == 0][::-1]
    path = written(tmp_path / "stream.csv", ["id", "text", "labels"], [*first, *late])
    state, out = tmp_path / "state.npz", tmp_path / "levels.jsonl"
    made = run("watch", model, path, "--adapt", "aci", "--state", state, "--out", out, "--json")
    assert made.code in (0, 7), made.err
    said = json.loads(made.out)
    assert (said["n_texts"], said["n_outcomes"], said["n_waiting"]) == (60, 20, 40)
    levels = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(levels) == 60
    assert {row["missed"] for row in levels} == {None}
    again = json.loads(run("watch", model, path, "--adapt", "aci", "--state", state, "--json").out)
    assert (again["n_texts"], again["n_outcomes"], again["n_known"]) == (0, 0, 80)  # a stream that restarts
    assert again["n_settled"] == 20
    more = written(tmp_path / "more.csv", ["id", "text", "labels"], [("t1", "", ",".join(some[1][1]))])
    settled = json.loads(run("watch", model, more, "--adapt", "aci", "--state", state, "--json").out)
    assert (settled["n_outcomes"], settled["n_waiting"]) == (1, 39)
    other = run("watch", model, more, "--adapt", "window", "--state", state)
    assert other.code == 2
    assert "is of aci at 0.05" in other.err


def test_adapting_in_two_runs_ends_as_in_one(run, model, texts, tmp_path):
    rows = [(f"t{k}", text, ",".join(labels)) for k, (text, labels) in enumerate(texts)]
    headings = ["id", "text", "labels"]
    whole = written(tmp_path / "whole.csv", headings, rows)
    once = json.loads(run("watch", model, whole, "--adapt", "dtaci", "-s", "0.1", "--json").out)
    state = tmp_path / "state.npz"
    for name, part in (("a.csv", rows[:150]), ("b.csv", rows)):  # the second run begins with rows of the first
        twice = run("watch", model, written(tmp_path / name, headings, part), "--adapt", "dtaci", "-s", "0.1",
                    "--state", state, "--json")  # fmt: skip
    twice = json.loads(twice.out)
    for name in ("level", "n_settled", "n_missed", "n_missed_without_adapting"):
        assert twice[name] == once[name]
    assert twice["watch"] == once["watch"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("t9", "", "trade"), "Row 2 (line 3) of 'bad.csv': There is no text 't9' that waits for its labels"),
        (
            ("t0", "", "trade,oil,football"),
            "Row 2 (line 3) of 'bad.csv': The text 't0' is settled already, with another",
        ),
        (("t1", "", "no such label"), "Row 2 (line 3) of 'bad.csv'"),
        (("", "", "trade"), "must have the id of an earlier text"),
        (("t1", "", ""), "must have a text, labels, or both"),
    ],
)
def test_bad_rows_of_a_stream_are_named(run, model, texts, tmp_path, row, words):
    first = ("t0", texts[0][0], ",".join(texts[0][1]))
    made = run("watch", model, written(tmp_path / "bad.csv", ["id", "text", "labels"], [first, row]), "--adapt", "aci")
    assert made.code in (2, 3)
    assert words in made.err


def test_options_that_do_not_go_together(run, model, tmp_path):
    path = written(tmp_path / "x.csv", ["text"], [["barrel"]])
    assert run("watch", model, path, "--adapt", "aci", "--unlabelled").code == 2
    assert run("watch", model, path, "--significance", "0.1").code == 2
    assert run("watch", model, path, "--adapt", "aci", "--part", "test").code == 2
    assert run("watch", model, path, "--adapt", "sometimes").code == 2
