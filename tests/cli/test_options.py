"""Every option changes the one figure that it is for. Models are made from scores here: nothing is trained."""

import json
import random
from pathlib import Path

import pytest

from surelabel import load_bundle
from tickets import OWN, TOPICS, tickets, write_csv


def scored(n, seed=0, **more):
    """Return tickets with the scores of a tagger that is often right."""
    rng = random.Random(seed)
    rows = []
    for row in tickets(n, seed):
        true = set(row["tags"].split(";"))
        scores = {tag: round(rng.betavariate(5, 2) if tag in true else rng.betavariate(1, 6), 4) for tag in TOPICS}
        part = rng.choice(["train", "filing", "calibration", "calibration", "test"])
        rows.append({**row, "labels": sorted(true), "scores": scores, "part": part, "number": f"n{row['id']}", **more})
    return rows


N_IN_PART = sum(row["part"] == "calibration" for row in scored(700))


def write_jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_jsonl(tmp_path_factory.mktemp("scores") / "scored.jsonl", scored(700))


@pytest.fixture(autouse=True)
def _no_report(monkeypatch):
    """Draw no figures: they take most of the time."""
    monkeypatch.setattr("surelabel.report.render_report", lambda *_: "")


@pytest.fixture(scope="module")
def base(table, tmp_path_factory):
    """Return the folder of a model with all defaults."""
    from tickets import run_here

    folder = tmp_path_factory.mktemp("models") / "base"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("surelabel.report.render_report", lambda *_: "")
        found = run_here("train", table, "--text", "body", "--scores", "scores", "--out", folder)
    assert found.code == 0, found.err
    return folder


def info(name):
    return lambda bundle: getattr(bundle.info, name)


def level(name):
    return lambda bundle: bundle.info.levels[name]


TRAIN = [
    # options, the figure that they change, and its new value
    (("--max-wrong", "0.2"), level("max_wrong"), "0.2"),
    (("--max-missed", "0.25"), level("max_missed"), "0.25"),
    (("--max-false", "0.01"), level("max_false"), "0.01"),
    (("--assurance", "0.8"), level("assurance"), "0.8"),
    (("--setting", "significance=0.10"), level("significance"), "0.10"),
    (("--setting", "max_tags=2"), info("max_tags"), 2),
    (("--never-file", "printer"), info("never_file"), ("printer",)),
    (("--setting", "name=mine"), info("name"), "mine"),
    (("--setting", "calibration=61"), lambda bundle: bundle.info.part_sizes["calibration"], 61),
    (("--setting", "min_labels=0"), lambda bundle: bundle.predictor.calibration_.min_labels, 0),
    (("--setting", "max_labels=4"), lambda bundle: bundle.predictor.calibration_.max_labels, 4),
    (("--measure", "l2"), lambda bundle: type(bundle.predictor.calibration_.measure).__name__, "LpNorm"),
    (("--by", "channel"), info("group_column"), "channel"),
    (("--split-column", "part"), lambda bundle: bundle.info.part_sizes["calibration"], N_IN_PART),
    (("--examples",), lambda bundle: len(bundle.info.examples), 3),
    (("--seed", "3"), info("seed"), 3),
]


@pytest.mark.parametrize(("options", "figure", "value"), TRAIN, ids=[" ".join(case[0]) for case in TRAIN])
def test_train(ok, table, base, tmp_path, options, figure, value):
    assert figure(load_bundle(base)) != value
    ok("train", table, "--text", "body", "--scores", "scores", "--out", tmp_path / "model", *options)
    assert figure(load_bundle(tmp_path / "model")) == value


def test_kinds_of_label_sets_by_their_number_of_labels(ok, table, base, tmp_path):
    ok("train", table, "--text", "body", "--scores", "scores", "--by-cardinality", "--out", tmp_path / "model")
    assert repr(load_bundle(base).predictor) != repr(load_bundle(tmp_path / "model").predictor)
    assert "ByCardinality" in repr(load_bundle(tmp_path / "model").predictor)


def test_constraints(ok, table, tmp_path):
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"exclusions": [["printer", "network"]]}))
    command = ("train", table, "--text", "body", "--scores", "scores", "--out", tmp_path / "model")
    ok(*command, "--setting", f"constraints={rules}")
    sets = load_bundle(tmp_path / "model").predictor.predict_set([[0.9, 0.1, 0.1, 0.9, 0.9]], significance="0.01")
    assert not any({"printer", "network"} <= labels for labels, _ in sets[0].top(100))


def test_scores_beside_the_texts(ok, run, base, tmp_path):
    rows = scored(700)
    long = [f"{row['id']},{tag},{score}" for row in rows for tag, score in row["scores"].items()]
    (tmp_path / "scores.csv").write_text("\n".join(["id,label,score", *long]) + "\n")
    texts = write_jsonl(tmp_path / "scored.jsonl", [{k: v for k, v in row.items() if k != "scores"} for row in rows])
    ok("train", texts, "--text", "body", "--scores", tmp_path / "scores.csv", "--out", tmp_path / "model")
    one, other = load_bundle(base), load_bundle(tmp_path / "model")
    assert one.evaluation.errors == other.evaluation.errors
    # The same for texts to decide on.
    command = ("predict", tmp_path / "model", texts, "--text", "body")
    answered = json.loads(ok(*command, "--scores", tmp_path / "scores.csv").splitlines()[0])
    assert answered["labels"]
    assert run(*command).code != 0


@pytest.fixture
def new(tmp_path):
    return write_jsonl(tmp_path / "new.jsonl", scored(40, seed=5))


def answers(ok, base, new, *options):
    printed = ok("predict", base, new, "--text", "body", "--scores", "scores", *options)
    return [json.loads(line) for line in printed.splitlines()]


def test_predict_levels(ok, base, new):
    plain = answers(ok, base, new)
    assert "size" not in plain[0]
    tenth = answers(ok, base, new, "-s", "0.1")
    fifth = answers(ok, base, new, "-s", "0.2")
    sure = answers(ok, base, new, "-s", "0.2", "--assurance", "0.99")
    sizes = [sum(answer["size"] for answer in each) for each in (tenth, fifth, sure)]
    assert sizes[0] > sizes[1] < sizes[2]
    assert max(len(answer["top"]) for answer in answers(ok, base, new, "-s", "0.1", "--top", "1")) == 1
    assert [answer["decision"] for answer in tenth] == [answer["decision"] for answer in plain]


def test_predict_columns_and_forms(ok, base, new, tmp_path):
    assert answers(ok, base, new, "--id", "number")[0]["id"].startswith("nt5")
    assert answers(ok, base, new, "--with-text")[0]["text"] == scored(1, seed=5)[0]["body"]
    assert ok("predict", base, new, "--text", "body", "--scores", "scores", "--format", "csv").startswith(
        "row,id,decision"
    )
    other = new.rename(tmp_path / "data")
    assert len(answers(ok, base, other, "--input-format", "jsonl")) == 40
    latin = tmp_path / "latin.csv"
    latin.write_bytes('body,scores\ncafé,"{""printer"": 0.9}"\n'.encode("latin-1"))
    assert answers(ok, base, latin, "--encoding", "latin-1", "--with-text")[0]["text"] == "café"
    for suffix in ("csv", "jsonl", "xlsx", "parquet"):
        out = tmp_path / f"out.{suffix}"
        ok("predict", base, other, "--input-format", "jsonl", "--text", "body", "--scores", "scores", "--out", out)
        assert out.stat().st_size > 1000


def test_calibrate_and_evaluate(ok, run, base, table, new, tmp_path):
    reading = ("--text", "body", "--scores", "scores")
    ok("calibrate", base, table, *reading, "--out", tmp_path / "again", "--measure", "l1")
    assert "LpNorm" in repr(load_bundle(tmp_path / "again").predictor)
    measured = json.loads(ok("evaluate", base, new, *reading, "--json"))
    assert measured["n_texts"] == 40
    broken = scored(300, seed=7)
    for row in broken:
        row["labels"] = ["printer"] if row["labels"] != ["printer"] else ["invoice"]
    path = write_jsonl(tmp_path / "broken.jsonl", broken)
    assert run("evaluate", base, path, *reading).code == 0
    assert run("evaluate", base, path, *reading, "--fail-on-broken-promise").code == 6


def test_labels_that_nobody_gave_are_no_empty_label_sets(ok, base, tmp_path):
    rows = scored(30, seed=5)
    for row in rows[:10]:
        row["labels"] = None
    path = write_jsonl(tmp_path / "some.jsonl", rows)
    measured = json.loads(ok("evaluate", base, path, "--text", "body", "--scores", "scores", "--json"))
    assert measured["n_texts"] == 20
    assert measured["left_out"] == {"no labels": 10}


@pytest.mark.parametrize(("tags", "unknown"), [("printer", 0), ("never seen", 30)])
def test_texts_of_one_kind_are_measured_and_calibrate(ok, model, tmp_path, tags, unknown):
    path = write_csv(tmp_path / "one.csv", [{**row, "tags": tags} for row in tickets(30, seed=5)])
    assert f'"n_unknown": {unknown}' in ok("evaluate", model, path, *OWN, "--json")
    n_before = len(load_bundle(model).calibration)
    assert f"with {n_before + 30} texts" in ok("calibrate", model, path, *OWN, "--add", "--out", tmp_path / "more")


def test_every_option_is_in_a_test():
    """An option that no test names may have stopped working."""
    from typer.main import get_command

    from surelabel.cli import app

    named = "\n".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    commands = dict(get_command(app).commands)
    for group in ("data", "reviews"):
        commands |= commands.pop(group).commands
    options = {(*one.opts, *one.secondary_opts) for command in commands.values() for one in command.params}
    missing = {names for names in options if not any(f'"{name}' in named for name in names if name[0] == "-")}
    elsewhere = {
        "--token",
        "--port",
        "--check",
        "--watch",
        "--training",
        "--calibrate",
        "--model",
    }  # in the tests of the service and of reviews
    assert {names[0] for names in missing if names[0][0] == "-"} <= elsewhere
