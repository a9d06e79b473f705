import json
import logging
import statistics

import pytest
from typer.testing import CliRunner

from surelabel.cli import app
from surelabel.exceptions import InvalidInputError
from surelabel.experiments import MEASURES, Folders, Settings, planned, run
from surelabel.experiments.reports import report_run
from surelabel.experiments.run import N_RESPLITS
from surelabel.experiments.tables import Table, all_tables, load_results, paper_figures


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Two runs on the synthetic corpus, which needs nothing from outside."""
    folder = tmp_path_factory.mktemp("experiment")
    folders = Folders(folder / "runs", folder / "results" / "runs")
    for settings in planned(["synthetic"], ["linear"], [0]):
        run(settings, folders)
    return folder, folders


def test_a_run_keeps_settings_versions_and_figures(done):
    _, folders = done
    result = json.loads(folders.result_of(Settings("synthetic", "linear")).read_text())
    assert result["run"] == {
        "corpus": "synthetic", "classifier": "linear", "conformal": True, "seed": 0, "options": [],
    }  # fmt: skip
    assert set(result["evaluations"]) == {"L2", "L4", "L8", "LogLoss"}
    assert len(result["resplits"]["L2"]["sizes"]) == 10
    assert "numpy" in result["versions"]
    # Re-splits are exchangeable: their mean error is near the significance, and not above it by more than chance.
    errors = result["resplits"]["L2"]["errors"]["0.1"]
    assert len(errors) == N_RESPLITS
    mean = statistics.mean(errors)
    assert 0.05 < mean < 0.1 + 4 * statistics.stdev(errors) / N_RESPLITS**0.5


def test_a_finished_run_is_skipped_and_an_interrupted_one_goes_on(done, caplog):
    _, folders = done
    settings = Settings("synthetic", "linear")
    target = folders.result_of(settings)
    before = target.read_bytes()
    with caplog.at_level(logging.INFO):
        run(settings, folders)
    assert "is done" in caplog.text
    # The probabilities are there, so the classifier is not trained again: same figures but for times.
    target.unlink()
    run(settings, folders)
    again = json.loads(target.read_text())
    old = json.loads(before)
    assert again["made_with"] == old["made_with"]
    assert again["underlying"] == old["underlying"]


def test_a_run_is_given_the_measures_that_it_lacks(done, tmp_path):
    _, folders = done
    settings = Settings("synthetic", "linear")
    few = Folders(folders.runs, tmp_path / "runs")
    run(settings, few, {"L4": MEASURES["L4"]})
    assert set(json.loads(few.result_of(settings).read_text())["evaluations"]) == {"L4"}
    tables = {table.name: table for table in all_tables(load_results(few.results))}
    assert [row[2] for row in tables["s-and-of"].rows] == ["L4"]
    assert "-" in tables["forced"].rows[0]
    run(settings, few, {"L4": MEASURES["L4"], "L2": MEASURES["L2"]})
    result = json.loads(few.result_of(settings).read_text())
    assert set(result["evaluations"]) == set(result["resplits"]) == {"L2", "L4"}


def test_a_report_is_made_once_and_from_a_result_file_alone(done, tmp_path):
    _, folders = done
    settings = Settings("synthetic", "linear")
    fresh = Folders(tmp_path / "runs", folders.results)
    path = report_run(settings, fresh)
    assert path.read_text().startswith("<!DOCTYPE html>")
    path.write_text("kept")
    assert report_run(settings, fresh).read_text() == "kept"


def test_a_result_of_another_version_is_made_again(done, tmp_path):
    _, folders = done
    settings = Settings("synthetic", "linear", conformal=False)
    other = Folders(folders.runs, tmp_path)
    other.result_of(settings).write_text('{"format": "surelabel-run-0"}')
    assert "underlying" in json.loads(run(settings, other).read_text())
    other.result_of(settings).write_text("{")
    assert "underlying" in json.loads(run(settings, other).read_text())


def test_damaged_results_are_named_and_skipped(done, tmp_path, caplog):
    _, folders = done
    for path in folders.results.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "foreign.json").write_text("{}")
    with caplog.at_level(logging.WARNING):
        results = load_results(tmp_path)
    assert len(results) == 2
    assert "broken.json" in caplog.text
    assert "foreign.json" in caplog.text


def test_unknown_settings_are_refused():
    with pytest.raises(InvalidInputError, match=r"'corpus'.*reuters"):
        Settings("roiters", "linear")
    with pytest.raises(InvalidInputError, match=r"'classifier'.*linear"):
        Settings("reuters", "svm")


def test_the_papers_figures():
    assert paper_figures()["underlying"]["reuters"]["bert"]["f1_micro"] == 0.907


def test_markdown_has_numbers_at_the_right():
    assert Table("t", "Two", ("a", "b"), (("x", "1"),)).to_markdown() == "| a | b |\n|---|---:|\n| x | 1 |"


def test_csv_quotes_what_it_must():
    assert Table("t", "T", ("corpus", "a"), (("x", "1,000"),)).to_csv() == 'corpus,a\nx,"1,000"\n'


def test_command_line(done):
    folder, _ = done
    arguments = [
        "reproduce",
        "--corpus",
        "synthetic",
        "--runs",
        str(folder / "runs"),
        "--results",
        str(folder / "results"),
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "The tables are in" in result.output
    assert (folder / "results" / "tables" / "sets.md").read_text().startswith("# Prediction sets")
    refused = CliRunner().invoke(app, ["reproduce", "--measure", "L3"])
    assert refused.exit_code == 2
    assert CliRunner().invoke(app, ["--version"]).output.startswith("surelabel ")
