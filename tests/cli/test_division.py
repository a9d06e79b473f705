"""Calibration by categories on the command line: train, predict, add, evaluate, and what is said about bad input."""

import csv
import json
import random

import pytest

from surelabel import corpora, load_bundle

CHANNELS = ("mail", "chat", "letter")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return a file of texts with a channel and a date each."""
    path = tmp_path_factory.mktemp("division") / "tickets.csv"
    whole = corpora.load("synthetic", n_texts=900, n_labels=6, test=0, validation=0, calibration=0)
    channels = random.Random(0).choices(CHANNELS, k=len(whole))
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "body", "tags", "channel", "day"])
        for row, (text, labels) in enumerate(zip(whole.texts, whole.label_sets, strict=True)):
            day = f"2026-{1 + row // 300:02d}-{1 + row % 28:02d}"
            writer.writerow([f"t{row}", text, ";".join(sorted(labels)), channels[row], day])
    return path


READING = ("--text", "body", "--labels", "tags", "--separator", ";")


@pytest.fixture(scope="module")
def divided(table, tmp_path_factory):
    """Return a model that is calibrated by channel and number of labels."""
    from surelabel.models import Division, TrainingSettings, train_to_folder

    corpus = corpora.load(table, text="body", labels="tags", separator=";", columns=("channel",))
    division = Division(by="channel", cardinality=(1, 2))
    folder = tmp_path_factory.mktemp("divided") / "model"
    train_to_folder(corpus, folder, TrainingSettings(compared={}, division=division))
    return folder


def rows_of(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_train_by_a_column_and_by_cardinality(run, table, tmp_path):
    model = tmp_path / "model"
    asked = ("--by", "channel", "--by-cardinality", "--by-rarity", "--rarity-edges", "150", "--no-compare")
    made = run("train", table, *READING, *asked, "--out", model, "--quiet")
    assert made.code == 0, made.err
    assert "Calibrated by ByGroup() * ByCardinality((1, 2, 3)) * ByRarity(..., (150,))" in made.out
    bundle = load_bundle(model)
    assert bundle.info.group_column == "channel"
    assert bundle.groups == ("chat", "letter", "mail")
    assert "fewer than 19 calibration texts" in made.err
    assert any("group 'chat', " in note and "(0 texts)" in note for note in bundle.info.notes)


def test_min_texts_joins_and_then_says_nothing_of_small_ones(run, table, tmp_path):
    model = tmp_path / "model"
    made = run("train", table, *READING, "--by", "channel", "--min-texts", "60", "--no-compare", "--out", model, "-q")
    assert made.code == 0, made.err
    bundle = load_bundle(model)
    assert "fewer than" not in made.err
    answer = bundle.answers(["Crude, a barrel."], significance="0.1", groups=["never seen"])[0]
    assert answer.category == "other groups"


def test_the_answer_names_its_category(run, divided, table, tmp_path):
    out = tmp_path / "answers.csv"
    made = run("predict", divided, table, "--text", "body", "--out", out)
    assert made.code == 0, made.err
    rows = rows_of(out)
    channels = [row["channel"] for row in rows_of(table)]
    assert all(row["category"].startswith(f"group '{name}', ") for row, name in zip(rows, channels, strict=True))
    shown = run("predict", divided, "Crude, a barrel, petroleum.", "--group", "letter", "--format", "blocks")
    assert "with calibration texts of group 'letter', 1 label" in " ".join(shown.out.split())


def test_a_data_set_has_groups_too(run, divided, table, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for channel in CHANNELS:
        lines = [json.dumps({"text": f"barrel {channel} {k}", "channel": channel}) for k in range(3)]
        (folder / f"{channel}.jsonl").write_text("\n".join(lines))
    made = run("predict", divided, folder, "--out", tmp_path / "out", "--format", "jsonl")
    assert made.code == 0, made.err
    files = (tmp_path / "out").glob("part-*.jsonl")
    records = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert len(records) == 9
    assert all(record["category"].startswith(f"group '{record['file'].split('.')[0]}'") for record in records)


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("", "Row 2 (line 3) of 'new.csv' must have a value in the column 'channel'. Got nothing"),
        (
            "fax",
            "Row 2 (line 3) of 'new.csv' cannot be answered (column 'channel'): the group 'fax' has no calibration",
        ),
    ],
)
def test_a_row_without_a_known_group_is_named(run, divided, tmp_path, cell, words):
    path = tmp_path / "new.csv"
    path.write_text(f"text,channel\na barrel,mail\na barrel,{cell}\ncrude,chat\n")
    stopped = run("predict", divided, path)
    assert stopped.code == 3
    assert words in stopped.err
    marked = run("predict", divided, path, "--on-error", "mark", "--json")
    records = [json.loads(line) for line in marked.out.splitlines()]
    assert [("error" in record) for record in records] == [False, True, False]


def test_missing_columns_and_groups_are_said(run, divided, model, tmp_path):
    path = tmp_path / "new.csv"
    path.write_text("text,source\na barrel,mail\n")
    made = run("predict", divided, path)
    assert made.code == 3
    assert "must have a column 'channel': the model is calibrated by it" in made.err
    assert run("predict", divided, path, "--by", "source").code == 0
    assert run("predict", divided, path, "--group", "mail").code == 0
    unknown = run("predict", divided, path, "--group", "fax")
    assert unknown.code == 2
    assert "The group 'fax' has no calibration texts" in unknown.err
    assert "each text needs its group" in run("predict", divided, "one text in quotes").err
    plain = tmp_path / "new.txt"
    plain.write_text("a barrel\n")
    assert "no columns, but the model needs a group" in run("predict", divided, plain).err
    assert "not calibrated by groups" in run("predict", model, path, "--by", "source").err
    assert "not calibrated by groups" in run("predict", model, path, "--group", "mail").err


def test_a_missing_group_in_training_names_row_and_column(run, table, tmp_path):
    rows = rows_of(table)
    rows[6]["channel"] = ""
    path = tmp_path / "gap.csv"
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    made = run("train", path, *READING, "--by", "channel", "--out", tmp_path / "model")
    assert made.code == 3
    assert "Row 7 (line 8) of 'gap.csv' must have a value in the column 'channel'" in made.err
    wrong = run("train", table, *READING, "--by", "source", "--out", tmp_path / "model")
    assert "'tickets.csv' must have a column 'source'" in wrong.err
    named = run("train", "reuters", "--by", "source", "--out", tmp_path / "model")
    assert "reuters is not a file and has no column" in named.err


def test_calibrate_changes_keeps_and_drops_the_division(run, divided, table, tmp_path):
    again = tmp_path / "again"
    assert run("calibrate", divided, table, *READING, "--out", again, "-q").code == 0
    assert load_bundle(again).predictor.taxonomy == load_bundle(divided).predictor.taxonomy
    together = tmp_path / "together"
    made = run("calibrate", divided, table, *READING, "--together", "--out", together, "-q")
    assert made.code == 0, made.err
    assert load_bundle(together).predictor.taxonomy is None
    assert load_bundle(together).groups is None
    rare = run("calibrate", divided, table, *READING, "--by-rarity", "--out", tmp_path / "rare", "-q")
    assert rare.code == 0, rare.err
    assert "Calibrated by ByRarity(..., (10, 100))" in rare.out
    assert run("calibrate", divided, table, *READING, "--add", "--by", "channel").code == 2
    assert run("calibrate", divided, table, *READING, "--together", "--by", "channel").code == 2


def test_add_takes_groups_and_evaluate_too(run, divided, tmp_path):
    path = tmp_path / "later.csv"
    whole = corpora.load("synthetic", n_texts=120, n_labels=6, seed=5, test=0, validation=0, calibration=0)
    lines = [
        [text, ";".join(sorted(labels)), CHANNELS[k % 2]]
        for k, (text, labels) in enumerate(zip(whole.texts, whole.label_sets, strict=True))
    ]
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([["body", "tags", "channel"], *lines])
    added = tmp_path / "added"
    made = run("calibrate", divided, path, *READING, "--add", "--out", added, "-q")
    assert made.code == 0, made.err
    old, new = (load_bundle(folder).predictor.calibration_.categories.totals for folder in (divided, added))
    grown = {group: sum(len(new[key]) - len(old.get(key, ())) for key in new if key[0] == group) for group, _ in new}
    assert grown == {"chat": 60, "letter": 0, "mail": 60}
    measured = run("evaluate", divided, path, *READING, "--json")
    assert measured.code == 0, measured.err
    assert json.loads(measured.out)["n_texts"] == 120


def test_assurance_makes_sets_larger(run, model):
    asked = ("predict", model, "Crude, a barrel.", "--significance", "0.2", "--json")
    plain, assured = (json.loads(run(*asked, *more).out) for more in ((), ("--assurance", "0.95")))
    assert assured["size"] >= plain["size"]
    assert "assurance" in run(*asked, "--assurance", "1.5").err


def test_watch_adapts_in_every_category_and_needs_groups(run, divided, table, tmp_path):
    bundle = load_bundle(divided)
    rows = [row for row in rows_of(table) if set(row["tags"].split(";")) <= set(bundle.label_names)][:80]
    for row in rows:
        row["body"] += " New."  # not a text of training

    def written(name, rows, headings):
        with (tmp_path / name).open("w", newline="") as stream:
            writer = csv.DictWriter(stream, headings, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
        return tmp_path / name

    stream = written("stream.csv", rows, list(rows[0]))
    asked = ("--adapt", "aci", "--significance", "0.1", "--state", tmp_path / "state.npz")
    made = run("watch", divided, stream, *READING, *asked, "--json")
    assert made.code in (0, 7), made.err
    said = json.loads(made.out)
    assert said["n_settled"] == 80
    assert set(said["error_rates"]) <= set(said["levels"])
    assert {name.split(",")[0] for name in said["error_rates"]} == {f"group {name!r}" for name in CHANNELS}
    assert any(level != 0.1 for level in said["levels"].values())
    words = run("watch", divided, stream, *READING, *asked).out
    assert "  group 'chat', 1 label: " in words
    assert "80 rows were taken before" in words
    rows[3]["channel"] = "fax"
    for name, headings, expected in (("no.csv", ["id", "body", "tags"], "'channel'"), ("fax.csv", None, "'fax'")):
        bad = run("watch", divided, written(name, rows, headings or list(rows[0])), *READING, "--adapt", "aci")
        assert bad.code == 3, bad.err
        assert expected in bad.err
