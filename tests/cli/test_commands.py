"""What the commands do, in this process."""

import csv
import io
import json
from pathlib import Path

import pytest
from pyarrow import parquet
from rich.console import Console

from bundle_cases import corpus, small_bundle
from surelabel import load_bundle
from surelabel.cli import app
from surelabel.corpora import Corpus
from surelabel.models import TrainingSettings, changing, train_bundle
from surelabel.predicting import Answerer, AnswerSettings, TextBatch

OWN = ("--text", "body", "--labels", "tags", "--separator", ";")


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "new.txt"
    path.write_text("".join(" ".join(text.split()) + "\n" for text in corpus().part("test").texts[:10]))
    return path


def test_help_has_examples_for_every_command(run):
    assert "surelabel demo" in run("--help").out
    assert "Exit codes" in run("--help").out
    names = [command.callback.__name__ for command in app.registered_commands]
    assert names == [
        "demo",
        "train",
        "calibrate",
        "predict",
        "evaluate",
        "watch",
        "compare",
        "reproduce",
        "serve",
        "review",
    ]
    for words in (*([name] for name in names), ["data", "list"], ["data", "get"], ["data", "stats"]):
        found = run(*words, "--help")
        assert found.code == 0
        assert f"  surelabel {' '.join(words)}" in found.out.partition("Example")[2]
        assert "--debug" in found.out


def test_version(run):
    assert run("--version").out.startswith("surelabel ")


def test_data(run, own_file):
    listed = json.loads(run("data", "list", "--json").out)
    assert any(each["name"] == "synthetic" and each["at_hand"] for each in listed)
    assert "synthetic" in run("data", "list").out
    assert "2,000 texts, 24 labels" in run("data", "get", "synthetic").out
    counted = json.loads(run("data", "stats", own_file, *OWN, "--json").out)
    assert (counted["docs"], counted["labels"]) == (600, 8)
    shown = run("data", "stats", own_file, *OWN).out
    assert "600" in shown
    assert "training texts" not in shown
    assert (counted["proper_train"], counted["test"]) == (600, 0)
    assert "most frequent labels" in shown


def test_counting_draws_no_split(run, own_file, monkeypatch):
    monkeypatch.setattr("surelabel.corpora.splits._draw", lambda *_, **__: 1 / 0)
    assert run("data", "stats", own_file, *OWN).code == 0
    assert run("data", "stats", "synthetic", "--json").code == 0


def test_train_calibrate_evaluate(run, own_file, tmp_path):
    model = tmp_path / "model"
    found = run("train", own_file, *OWN, "--out", model, "--name", "tickets", "--setting", "min_texts=2", "--quiet")
    assert found.code == 0, found.err
    assert "micro-F1" in found.out
    assert f"surelabel serve {model}" in found.out
    assert "training" not in found.err
    bundle = load_bundle(model)
    assert (bundle.info.name, bundle.info.measure, bundle.info.settings["min_texts"]) == ("tickets", "LogLoss", 2)
    assert list(bundle.evaluation) == ["LogLoss", "L2", "L4", "L8"]
    assert bundle.report is not None

    found = run("calibrate", model, own_file, *OWN, "--measure", "L4", "--json", "--out", tmp_path / "other")
    assert json.loads(found.out)["info"]["measure"] == "L4"
    assert load_bundle(tmp_path / "other").predictor.calibration_.n_texts == 90
    assert load_bundle(model).info == bundle.info

    found = run("evaluate", model, own_file, *OWN, "--report", tmp_path / "report.html")
    assert "120 test texts" in found.out
    assert (tmp_path / "report.html").is_file()
    figures = json.loads(run("evaluate", model, own_file, *OWN, "--json").out)
    assert figures["n_texts"] == 120


def test_numbers_as_label_names(run, tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text("text,labels\n" + "fever and cough,101\nbroken arm,202\n" * 20)
    refused = run("data", "stats", path)
    assert refused.code == 3
    assert "--numeric-labels" in refused.err
    taken = run("data", "stats", path, "--numeric-labels")
    assert taken.code == 0
    assert "101" in taken.out


def test_empty_texts_are_told_of_once(run, tmp_path):
    path = tmp_path / "tickets.csv"
    rows = [f'"{body}",{label}' for body, label in (("wheat up", "wheat"), ("gold down", "gold"), ("", "gold"))]
    path.write_text("\n".join(["text,labels", *rows * 40]) + "\n")
    trained = run("train", path, "--out", tmp_path / "model")
    assert trained.code == 0
    assert trained.err.count("empty") == 1
    assert "At significance 0.1 the true label-set was missed" in trained.err + trained.out


def test_very_few_calibration_texts(run, tmp_path):
    path = tmp_path / "tickets.csv"
    path.write_text("text,labels\n" + "wheat up,wheat\ngold down,gold\n" * 10)
    trained = run("train", path, "--calibration", 3, "--out", tmp_path / "model")
    assert trained.code == 0
    assert "3 calibration texts are too few for a significance of 0.2" in trained.err + trained.out


def test_sizes_of_parts(run, own_file, tmp_path):
    """Parts are drawn in the sizes asked for, and in the same ones again when the model is measured."""
    model = tmp_path / "model"
    sizes = ("--test", "0.1", "--validation", "0", "--calibration", "59")
    found = run("train", own_file, *OWN, *sizes, "--out", model, "--no-compare", "--quiet")
    assert found.code == 0, found.err
    n_texts = len(corpus())
    parts = load_bundle(model).info.part_sizes
    assert parts == {"train": n_texts - 59 - round(0.1 * n_texts), "calibration": 59, "test": round(0.1 * n_texts)}
    assert "with 59 calibration and" in found.out
    measured = run("evaluate", model, own_file, *OWN)
    assert measured.code == 0, measured.err
    assert f"{round(0.1 * n_texts)} test texts" in measured.out


def test_train_with_all_that_is_fitted(run, own_file, tmp_path):
    names = corpus().label_names
    rules = tmp_path / "rules.json"
    rules.write_text(json.dumps({"implications": [[names[0], names[1]]]}))
    given = ("--measure", "penalised", "--constraints", rules, "--recalibrate", "--no-compare")
    found = run("train", own_file, *OWN, "--out", tmp_path / "model", *given)
    assert found.code == 0, found.err
    assert "do not obey the constraints" in found.err
    bundle = load_bundle(tmp_path / "model")
    assert bundle.info.measure == "Penalised(LogLoss)"
    assert bundle.recalibration is not None
    found = run("calibrate", tmp_path / "model", own_file, *OWN)
    assert found.code == 0, found.err
    again = load_bundle(tmp_path / "model")
    assert again.predictor.measure == bundle.predictor.measure
    assert again.predictor.constraints == bundle.predictor.constraints is not None
    assert again.recalibration.methods == bundle.recalibration.methods
    rules.write_text(json.dumps({"at_most": [{"k": 0, "labels": list(names)}]}))
    found = run("train", own_file, *OWN, "--out", tmp_path / "other", "--constraints", rules)
    assert found.code == 2
    assert "leaves no candidate" in found.err
    assert not (tmp_path / "other").exists()
    found = run("train", own_file, *OWN, "--out", tmp_path / "other", "--measure", "mahalanobi")
    assert found.code == 2
    assert "mahalanobis, mixture, penalised" in found.err


def test_only_a_blend_has_members(run, own_file, tmp_path):
    found = run("train", own_file, *OWN, "--of", "linear,linear", "--out", tmp_path / "model")
    assert found.code == 2
    assert "only a blend has members" in found.err


def test_best_guesses_for_f1(run, own_file, tmp_path):
    """Trained, evaluated and predicted by thresholds: both rules are named, sets stay the same."""
    common = ("train", own_file, *OWN, "--no-compare", "--measure", "LogLoss")
    assert run(*common, "--out", tmp_path / "exact").code == 0
    trained = run(*common, "--out", tmp_path / "f1", "--decision", "f1")
    assert trained.code == 0, trained.err
    assert "Best guess: exactly right for" in trained.out
    assert "The most plausible label-set, the paper's rule: exactly right for" in trained.out
    (tmp_path / "new.txt").write_text("\n".join(corpus().part("test").texts[:30]) + "\n")
    records = {}
    for name in ("exact", "f1"):
        out = tmp_path / f"{name}.jsonl"
        assert run("predict", tmp_path / name, tmp_path / "new.txt", "--out", out).code == 0
        records[name] = [json.loads(line) for line in out.read_text().splitlines()]
    bundle = load_bundle(tmp_path / "f1")
    expected = bundle.answers(corpus().part("test").texts[:30], significance="0.05")
    assert [record["labels"] for record in records["f1"]] == [list(answer.labels) for answer in expected]
    for exact, f1 in zip(records["exact"], records["f1"], strict=True):
        assert [exact[name] for name in ("certain", "open", "size", "top")] == [
            f1[name] for name in ("certain", "open", "size", "top")
        ]


def test_calibrate_in_place(run, trained, own_file, tmp_path):
    load_bundle(trained).save(tmp_path / "model")
    found = run("calibrate", tmp_path / "model", own_file, *OWN, "--measure", "l2")
    assert "Calibrated with 90 texts (L2)" in found.out
    assert load_bundle(tmp_path / "model").info.measure == "L2"


def test_calibrate_with_more_texts(run, trained, own_file, tmp_path):
    found = run("calibrate", trained, own_file, *OWN, "--add", "--part", "test", "--out", tmp_path / "more")
    assert found.code == 0, found.err
    assert "Calibrated with 210 texts" in found.out
    again = run("calibrate", tmp_path / "more", own_file, *OWN, "--add", "--part", "test")
    assert (again.code, "a text counts once" in again.err) == (2, True)
    assert run("calibrate", trained, own_file, *OWN, "--add", "--measure", "L2").code == 2


def test_two_calibrations_at_once_do_not_lose_texts(run, trained, own_file, tmp_path):
    model = tmp_path / "model"
    load_bundle(trained).save(model)
    with changing(model):
        refused = run("calibrate", model, own_file, *OWN, "--add", "--part", "test")
    assert (refused.code, "Another run is writing" in refused.err) == (2, True)
    assert run("calibrate", model, own_file, *OWN, "--add", "--part", "test").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_what_is_promised_can_be_set(run, trained, own_file, tmp_path):
    strict = run("calibrate", trained, own_file, *OWN, "--max-wrong", "0.001", "--out", tmp_path / "strict", "--json")
    assert strict.code == 0
    words = " ".join(json.loads(strict.out)["info"]["verdict"]["words"])
    assert "Nothing can be filed with at most 0.1 % of them wrong" in words
    assert "certification texts are too few" in words
    refused = run("calibrate", trained, own_file, *OWN, "--add", "--part", "test", "--max-wrong", "0.1")
    assert refused.code == 2
    assert "certified with all texts at once" in " ".join(refused.err.replace("│", " ").split())
    wrong = run("calibrate", trained, own_file, *OWN, "--assurance", "1.5", "--out", tmp_path / "wrong")
    assert wrong.code != 0
    assert "assurance" in wrong.err


def test_evaluate_ends_with_the_verdict(run, trained, own_file):
    shown = run("evaluate", trained, own_file, *OWN)
    assert "Verdict:" in shown.out
    assert "Recommended: significance" in shown.out
    figures = json.loads(run("evaluate", trained, own_file, *OWN, "--json").out)
    assert figures["verdict"]["part"] == "test"
    assert 0.99 < figures["verdict"]["file"] + figures["verdict"]["choose"] + figures["verdict"]["read"] < 1.01


def test_calibrate_the_current_folder_is_refused_clearly(run, trained, own_file, tmp_path, monkeypatch):
    load_bundle(trained).save(tmp_path / "model")
    monkeypatch.chdir(tmp_path / "model")
    refused = run("calibrate", ".", own_file, *OWN)
    assert refused.code == 2
    assert "while it is the current folder" in refused.err


def test_a_broken_promise_is_said_first_and_has_a_code_of_its_own(run, trained, own_file, tmp_path):
    lines = own_file.read_text().splitlines()
    tags = [line.rpartition(",")[2] for line in lines[1:]]
    rows = [
        f'{line.rpartition(",")[0][:-1]} too",{tag}' for line, tag in zip(lines[1:], tags[7:] + tags[:7], strict=True)
    ]
    (tmp_path / "later.csv").write_text("\n".join([lines[0], *rows]) + "\n")
    found = run("evaluate", trained, tmp_path / "later.csv", *OWN)
    assert found.code == 0, found.err
    assert found.out.startswith("PROMISE BROKEN: asked for")
    judged = run("evaluate", trained, tmp_path / "later.csv", *OWN, "--json", "--fail-on-broken-promise")
    assert judged.code == 6
    assert json.loads(judged.out)["broken_promise"] is True
    kept = run("evaluate", trained, own_file, *OWN, "--fail-on-broken-promise", "--criteria")
    assert kept.code == 0, kept.err
    assert kept.out.startswith("The promise is kept")
    assert "Sums of p-values over all candidates" in kept.out
    assert "in the paper's Hamming ball" in kept.out


def test_a_trained_model_as_json(run, own_file, tmp_path):
    options = ("--json", "--seed", "3", "--measure", "L2", "--fresh", "--no-compare")
    document = json.loads(run("train", own_file, *OWN, "--out", tmp_path / "m", *options).out)
    assert document["info"]["seed"] == 3
    assert {each["measure"] for each in document["figures"]} == {"L2"}
    assert document["broken_promise"] is False
    assert {each["verdict"] for each in document["figures"]} <= {"held", "chance"}


def _expected(**options):
    settings = AnswerSettings(**options)
    texts = [*corpus().part("test").texts[:10]]
    return Answerer(small_bundle(), settings).answer(TextBatch(list(range(1, 11)), texts))


def test_predict_in_a_pipe_is_jsonl(run, model, texts):
    found = run("predict", model, texts)
    assert [json.loads(line) for line in found.out.splitlines()] == _expected(significance="0.05")
    found = run("predict", model, texts, "--confidence-level", "0.9", "--top", "2", "--json", "--batch-size", "3")
    assert [json.loads(line) for line in found.out.splitlines()] == _expected(significance="0.1", top=2)


def test_predict_as_csv_and_blocks(run, model, texts):
    rows = list(csv.DictReader(io.StringIO(run("predict", model, texts, "--format", "csv", "--with-text").out)))
    assert len(rows) == 10
    assert rows[0]["text"] == texts.read_text().splitlines()[0]
    shown = run("predict", model, texts, "--format", "blocks").out
    assert "at significance 0.05" in shown
    assert shown.count("best guess") == 10
    assert "in words" in shown
    assert "in words" not in run("predict", model, texts, "--format", "blocks", "--no-describe").out


def test_predict_describes_in_files_where_it_is_asked_to(run, model, texts, tmp_path):
    answers = small_bundle().answers([*corpus().part("test").texts[:10]], significance="0.05", describe=True)
    found = run("predict", model, texts, "--describe")
    assert [json.loads(line)["description"] for line in found.out.splitlines()] == [
        answer.description for answer in answers
    ]
    found = run("predict", model, texts, "--describe", "--out", tmp_path / "a.csv")
    assert found.code == 0, found
    rows = list(csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text(), newline="")))
    assert [row["description"] for row in rows] == [answer.description for answer in answers]


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
def test_predict_into_a_file(run, model, texts, tmp_path, name):
    found = run("predict", model, texts, "--out", tmp_path / name)
    assert found.out == f"10 answers are in {tmp_path / name}.\n"
    assert run("predict", model, texts, "--out", tmp_path / name, "--resume", "--quiet").out == ""
    if name.endswith("jsonl"):
        found = [json.loads(line) for line in (tmp_path / name).read_text().splitlines()]
        assert found == _expected(significance="0.05")
    elif name.endswith("parquet"):
        assert parquet.read_table(tmp_path / name).num_rows == 10


def test_one_text_and_the_p_value_of_a_label_set(run, model):
    text = corpus().part("test").texts[0]
    names = small_bundle().label_names[:2]
    expected = float(small_bundle().predict_p([text], [names])[0])
    found = run("predict", model, " ".join(text.split()), "--p-value", ",".join(names), "--format", "blocks")
    assert found.code == 0, found.err
    verdict = "plausible" if expected > 0.05 else "not plausible"
    assert f"  asked for   {expected:.3f}  {names[0]}, {names[1]}: {verdict}" in found.out
    record = json.loads(run("predict", model, " ".join(text.split()), "--p-value", names[0]).out)
    assert record["p_value_of"] == [names[0]]


def test_rows_that_cannot_be_read(run, model, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,text\n1,Wheat rose\n2,x,y\n1,\n")
    assert run("predict", model, path).code == 3
    found = run("predict", model, path, "--on-error", "skip")
    assert [json.loads(line)["row"] for line in found.out.splitlines()] == [1, 3]
    assert "warning: Row 2 (line 3) of 't.csv' must have 2 cells. Got 3 instead." in found.err
    assert "Empty or missing texts of 't.csv': 1, in row 3" in found.err
    assert "Ids of 't.csv' that occur again: 1, such as '1' (row 3)" in found.err
    found = run("predict", model, path, "--on-error", "mark", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(found.out)))
    assert [bool(row["error"]) for row in rows] == [False, True, False]
    found = run("predict", model, path, "--on-error", "mark", "--format", "blocks")
    assert "2  \n" not in found.out
    assert "no answer   Row 2 (line 3) of 't.csv' must have 2 cells" in found.out
    found = run("predict", model, path, "--on-error", "skip", "--out", tmp_path / "a.csv")
    assert f"1 rows have none; {tmp_path / 'a.csv'}.skipped.jsonl says why." in found.out


def test_workbooks_in_and_out(run, model, tmp_path):
    import openpyxl

    book = openpyxl.Workbook()
    book.active.append(["id", "body"])
    book.active.append(["a", "Wheat rose"])
    book.save(tmp_path / "t.xlsx")
    found = run("predict", model, tmp_path / "t.xlsx", "--text", "body", "--out", tmp_path / "a.xlsx")
    assert found.code == 0, found.err
    headings, row = openpyxl.load_workbook(tmp_path / "a.xlsx").active.values
    assert dict(zip(headings, row, strict=True))["id"] == "a"


CONTROLS = "\x1b[2J\x07\x9b31m\r\x08\u202e"


def test_control_characters_never_reach_the_terminal(run, tmp_path, monkeypatch):
    source = corpus()
    names = [f"{name}{CONTROLS}" for name in source.label_names]
    labels = [{f"{name}{CONTROLS}" for name in given} for given in source.label_sets]
    hostile = Corpus.from_label_sets("hostile", source.texts, labels, label_names=names, parts=source.parts)
    train_bundle(hostile, TrainingSettings(compared={})).save(tmp_path / "model")
    path = tmp_path / f"t{CONTROLS}.jsonl"
    path.write_text(json.dumps({"id": f"x{CONTROLS}", "text": f"{source.texts[0]}{CONTROLS}"}) + "\n{\n")
    terminal = Console(force_terminal=True, width=100)
    monkeypatch.setattr("surelabel.cli.commands_predict.console", terminal)
    for options in (["--format", "blocks"], ["--json"], ["--format", "csv", "--separator", ";"]):
        found = run("predict", tmp_path / "model", path, "--on-error", "mark", "--with-text", "-s", "0.3", *options)
        assert found.code == 0, found.err
        shown = found.out + found.err
        assert len(shown) > 300
        assert not [mark for mark in shown if mark in CONTROLS.replace("[2J", "").replace("31m", "")]
    found = run("predict", tmp_path / "model", path)
    assert (found.code, "\x1b" in found.err) == (3, False)


def test_progress_shows_rate_and_time_left(run, model, texts, tmp_path, monkeypatch):
    shown = io.StringIO()
    terminal = Console(file=shown, force_terminal=True, width=120)
    monkeypatch.setattr("surelabel.cli.commands_predict.errors", terminal)
    assert run("predict", model, texts, "--out", tmp_path / "a.csv", "--batch-size", "2").code == 0
    assert "10 texts," in shown.getvalue()
    assert "/s" in shown.getvalue()
    assert "0:00:00" in shown.getvalue()
    shown.truncate(0)
    run("predict", model, texts, "--out", tmp_path / "a.csv", "--quiet")
    assert "texts," not in shown.getvalue()


def test_predict_a_known_corpus(run, model):
    found = run("predict", model, "synthetic", "--top", "0")
    assert len(found.out.splitlines()) == 400
    assert json.loads(found.out.splitlines()[0])["id"].startswith("synthetic-")


def test_predict_warns_of_a_level_that_is_too_small(run, model, texts):
    found = run("predict", model, texts, "--significance", "0.001", "--top", "1")
    assert found.code == 0
    assert "warning: 90 calibration texts are too few for significance 0.001" in found.err
    assert "Traceback" not in found.err


def test_demo(run, tmp_path, monkeypatch):
    monkeypatch.delenv("SURELABEL_DATA", raising=False)
    monkeypatch.setenv("SURELABEL_CACHE", str(tmp_path / "cache"))
    found = run("demo", "--offline", "--out", tmp_path / "demo", "--quiet")
    assert found.code == 0, found.err
    for part in (
        "Reuters is not used: it is not on this machine.",
        "A SURE ONE",
        "In truth:",
        f"The report on it:       {tmp_path / 'demo' / 'report.html'}",
        f"surelabel serve {tmp_path / 'demo'}",
    ):
        assert part in found.out
    assert load_bundle(tmp_path / "demo").info.corpus == "synthetic"


def test_serve_calls_the_service(run, model, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "surelabel.service.run", lambda *arguments, **options: calls.append((arguments, options)), raising=False
    )
    monkeypatch.setenv("SURELABEL_TOKEN", "secret")
    assert run("serve", model, "--port", "0").code == 0
    assert run("serve", model, "--port", "0", "--watch").code == 0
    assert run("serve", model, "--port", "0", "--adapt", "aci", "-s", "0.1", "--state", "outcomes.npz").code == 0
    plain = {"allow_unprotected": False, "watch": False, "review": None, "adapt": None, "state": None, "workers": 1}
    adapting = {"adapt": "aci", "adapt_significance": "0.1", "state": Path("outcomes.npz")}
    assert calls == [
        ((model, "127.0.0.1", 0, "secret"), plain | changed) for changed in ({}, {"watch": True}, adapting)
    ]
    assert run("serve", model, "-s", "0.1").code == 2  # requests name their own level
