"""Experiments: runs are resumed and never repeated; tables come from result files alone."""

import importlib
import json
import shutil

import numpy as np
import pytest

from surelabel import experiments
from surelabel.exceptions import InvalidInputError
from surelabel.experiments import tables

runs = importlib.import_module("surelabel.experiments.run")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return the folders of a finished conformal run and a plain one on made-up texts."""
    folder = tmp_path_factory.mktemp("experiments")
    made = experiments.Folders(folder / "runs", folder / "results" / "runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "N_RESPLITS", 3)
        for settings in experiments.planned(["synthetic"], ["linear"], [0], {"C": 1.0, "loss": "svm"}):
            experiments.run(settings, made, ["L2"])
    return made


def test_names_and_plans():
    settings = experiments.Settings("reuters20", "linear", seed=3)
    assert settings.name == "reuters20-linear-conformal-seed3"
    names = [settings.name for settings in experiments.planned(["ctdc"], ["linear", "bert"], range(2))]
    assert len(names) == len(set(names)) == 8
    assert "ctdc-linear-plain-seed0" in names
    with pytest.raises(InvalidInputError, match="roiters"):
        experiments.Settings("roiters", "linear")
    with pytest.raises(InvalidInputError, match="forest"):
        experiments.Settings("reuters", "forest")


def test_a_result_has_settings_seeds_versions_machine_and_figures(folders):
    document = json.loads((folders.results / "synthetic-linear-plain-seed0.json").read_text())
    assert document["run"]["classifier"] == "linear"
    assert document["run"]["seed"] == 0
    assert set(document["underlying"]["test"]) == {"accuracy", "f1_micro", "f1_macro", "hamming_loss"}
    assert {"python", "surelabel", "numpy"} <= set(document["versions"])
    assert document["machine"]["cores"] >= 1
    assert "evaluations" not in document
    conformal = json.loads((folders.results / "synthetic-linear-conformal-seed0.json").read_text())
    found = conformal["evaluations"]["L2"]
    assert {float(point["significance"]) for point in found["curve"]} >= {0.05, 0.1, 0.2}
    assert len(conformal["resplits"]["L2"]["errors"]["0.05"]) >= 3
    # Calibration texts are trained with only where nothing is calibrated.
    n_calibration = conformal["n_texts"]["calibration"]
    trained = [one["made_with"]["corpus"]["n_training"] for one in (document, conformal)]
    assert trained[0] == trained[1] + n_calibration


def test_a_finished_run_is_left_alone_and_a_missing_measure_is_added(folders, tmp_path, monkeypatch):
    own = experiments.Folders(tmp_path / "runs", tmp_path / "results")
    shutil.copytree(folders.runs, own.runs)
    shutil.copytree(folders.results, own.results)
    settings = experiments.Settings("synthetic", "linear")
    path = own.result_of(settings)
    before = path.read_bytes()
    monkeypatch.setattr(runs.text, "make", lambda *_, **__: pytest.fail("trained again"))
    monkeypatch.setattr(runs, "N_RESPLITS", 2)
    assert experiments.run(settings, own, ["L2"]) == path
    assert path.read_bytes() == before
    experiments.run(settings, own, ["L2", "LogLoss"])
    old, new = json.loads(before), json.loads(path.read_text())
    assert new["evaluations"]["L2"] == old["evaluations"]["L2"]
    assert set(new["evaluations"]) == set(new["resplits"]) == {"L2", "LogLoss"}


def test_an_interrupted_run_keeps_its_probabilities(folders, tmp_path, monkeypatch):
    """The result is lost, the probabilities are not: the same figures, without training."""
    own = experiments.Folders(folders.runs, tmp_path)
    monkeypatch.setattr(runs.text, "make", lambda *_, **__: pytest.fail("trained again"))
    settings = experiments.Settings("synthetic", "linear", conformal=False)
    again = json.loads(experiments.run(settings, own).read_text())
    first = json.loads(folders.result_of(settings).read_text())
    assert again["underlying"] == first["underlying"]


def test_a_damaged_result_is_made_again(folders, tmp_path):
    own = experiments.Folders(folders.runs, tmp_path)
    settings = experiments.Settings("synthetic", "linear", conformal=False)
    own.result_of(settings).write_text('{"format": "surelabel-run-1"}')
    experiments.run(settings, own)
    assert json.loads(own.result_of(settings).read_text())["format"] == runs.FORMAT


def test_tables_of_a_run(folders, tmp_path):
    results = experiments.load_results(folders.results)
    made = {table.name: table for table in experiments.all_tables(results)}
    assert {"without-icp", "forced", "s-and-of", "sets", "demand"} == set(made)
    plain = next(result for result in results if not result["run"]["conformal"])
    row = dict(zip(made["without-icp"].header, made["without-icp"].rows[0], strict=True))
    assert row["corpus"], row["classifier"] == ("synthetic", "linear")
    assert row["F1 micro"] == f"{plain['underlying']['test']['f1_micro']:.3f}"
    conformal = next(result for result in results if result["run"]["conformal"])
    sizes = [dict(zip(made["sets"].header, row, strict=True)) for row in made["sets"].rows]
    tenth = next(row for row in sizes if row["significance"] == "0.1")
    assert tenth["error, own test"] == f"{tables.point_at(conformal, 'L2', '0.1')['error']:.3f}"
    errors = conformal["resplits"]["L2"]["errors"]["0.1"]
    assert tenth["error, re-splits"] == f"{np.mean(errors):.3f} ± {np.std(errors, ddof=1):.3f}"
    experiments.write_tables(made.values(), tmp_path)
    assert (tmp_path / "sets.csv").read_text() == made["sets"].to_csv()
    assert made["sets"].to_markdown() in (tmp_path / "sets.md").read_text()


def test_figures_of_a_run(folders, tmp_path):
    results = experiments.load_results(folders.results)
    paths = experiments.write_figures(results, tmp_path)
    names = ["synthetic-linear-errors.svg", "synthetic-linear-sizes.svg", "search-load.svg"]
    assert [path.name for path in paths] == names
    assert all(path.read_text().startswith("<svg") for path in paths)


def test_what_is_no_result_is_skipped(tmp_path):
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "other.json").write_text("[]")
    assert experiments.load_results(tmp_path) == []


def test_the_papers_figures_stand_beside_ours():
    figures = tables.paper_figures()
    assert figures["underlying"]["ctdc"]["bert"]["accuracy"] == 0.611
    assert figures["max_cardinality"]["reuters"] == 15
    result = {
        "run": {"corpus": "ctdc", "classifier": "bert", "conformal": False, "seed": 0},
        "underlying": {"test": {"accuracy": 0.5, "f1_micro": 0.6, "f1_macro": 0.7, "hamming_loss": 0.01}},
    }
    ours, paper = tables.without_icp([result]).rows
    assert ours[4:] == ("0.500", "0.600", "0.700", "0.010")
    assert paper[2:5] == ("paper", "-", "0.611")


def test_several_seeds_have_a_mean_and_a_standard_deviation():
    def one(value):
        metrics = dict.fromkeys(("accuracy", "f1_micro", "f1_macro", "hamming_loss"), value)
        return {
            "run": {"corpus": "ctdc", "classifier": "linear", "conformal": False},
            "underlying": {"test": metrics},
        }

    row = tables.without_icp([one(0.5), one(0.7)]).rows[0]
    assert row[3:5] == ("2", "0.600 ± 0.141")
