"""A corpus, all methods: files that are written, what they say."""

import numpy as np
import pytest

from surelabel import LogLoss, LpNorm, Mahalanobis
from surelabel.evaluation import compare as comparison
from surelabel.evaluation.compare import compare
from surelabel.exceptions import ArtifactError, InvalidInputError
from surelabel.experiments import Folders, Settings
from surelabel.experiments.compare import (
    RIVALS,
    compare_run,
    comparison_table,
    load_comparison,
    make_measures,
)
from surelabel.probabilities_file import PartProbabilities, Probabilities

QUICK = [name for name in RIVALS if name not in ("recall", "transductive")]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("compare")
    folders = Folders(folder / "runs", folder / "results" / "runs")
    settings = Settings("synthetic", "linear")
    compared = compare_run(
        settings,
        folders,
        folder / "results",
        measures=["L2", "LogLoss"],
        rivals=QUICK,
        levels=["0.05", "0.2"],
        n_splits=2,
    )
    return folder / "results", compared


def test_files_are_written_and_read_again(done):
    results, compared = done
    again = load_comparison(results / "comparisons" / "synthetic-linear.json")
    assert again.guarantees == compared.guarantees
    assert [r.method for r in again.records] == [r.method for r in compared.records]
    assert again.records[0].error == pytest.approx(compared.records[0].error, rel=1e-6)
    svg = (results / "figures" / "synthetic-linear-comparison.svg").read_text()
    assert "Bonferroni" in svg
    assert "significance" in svg
    broken = results / "broken.json"
    broken.write_text("[")
    with pytest.raises(ArtifactError, match="damaged"):
        load_comparison(broken)


def test_the_table_has_every_method_at_every_level_and_what_it_guarantees(done):
    results, compared = done
    table = comparison_table(compared)
    assert len(table.rows) == 2 * (2 + len(QUICK))
    assert table.rows[0][:2] == ("L2", "0.05")
    assert "L2, LogLoss: the label-set is missed in at most e of texts" in table.note
    assert "per label: each label, for itself" in table.note
    assert table.to_markdown() in (results / "comparisons" / "synthetic-linear.md").read_text()


def test_the_guarantee_of_label_sets_holds_on_re_splits(done):
    _, compared = done
    for method in ("L2", "LogLoss", "Bonferroni"):
        mean, deviation = compared.row(method, "0.2").error
        assert mean < 0.2 + 0.05 + deviation


def test_an_interrupted_comparison_goes_on(tmp_path, monkeypatch):
    given = {"measures": ["L2", "LogLoss"], "rivals": ["seen"], "levels": ["0.05", "0.2"], "n_splits": 2}
    settings, folders = Settings("synthetic", "linear"), Folders(tmp_path / "runs", tmp_path / "results" / "runs")
    measure, measured = comparison._measure, []

    def until_interrupted(rival, split, *rest):
        measured.append((rival.name, split))
        if len(measured) == 4:
            raise KeyboardInterrupt
        return measure(rival, split, *rest)

    monkeypatch.setattr(comparison, "_measure", until_interrupted)
    with pytest.raises(KeyboardInterrupt):
        compare_run(settings, folders, tmp_path / "results", **given)
    again = compare_run(settings, folders, tmp_path / "results", **given)
    assert measured[3:] == [("L2", 1), ("L2", 1), ("LogLoss", 1), ("seen label-sets", 1)]
    kept = tmp_path / "runs" / settings.name / "comparison.json"
    kept.write_text(kept.read_text()[:-9])
    assert compare_run(settings, folders, tmp_path / "results", **given) == again
    assert len(measured) == 7 + 6
    compare_run(settings, folders, tmp_path / "results", **{**given, "levels": ["0.1"]})
    assert len(measured) == 7 + 6 + 6


def test_unknown_rivals_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="Rivals are seen, bonferroni"):
        compare_run(
            Settings("synthetic", "linear"),
            Folders(tmp_path / "runs", tmp_path),
            tmp_path,
            rivals=["mulaconf"],
        )


def parts(*names):
    rng = np.random.default_rng(0)
    probabilities = rng.random((60, 3))
    labels = np.eye(3, dtype=bool)[rng.integers(0, 3, 60)]
    part = PartProbabilities(probabilities, labels, tuple(str(i) for i in range(60)))
    return Probabilities(dict.fromkeys(names, part), ("a", "b", "c"), 2, {})


def test_measures_are_fitted_on_the_validation_part():
    given = parts("validation", "calibration", "test")
    validation = given.parts["validation"]
    made = make_measures(["L4", "Mahalanobis"], given, validation.labels)
    assert made["L4"] == LpNorm(4)
    assert made["Mahalanobis"] == Mahalanobis().fit(validation.probabilities, validation.labels)
    with pytest.raises(InvalidInputError, match="validation part"):
        make_measures(["Mahalanobis"], parts("calibration", "test"), validation.labels)
    with pytest.raises(InvalidInputError):
        make_measures(["L0"], given, validation.labels)


def test_measures_with_interactions_are_compared_like_others():
    given = parts("validation", "calibration", "test")
    made = make_measures(["Mahalanobis", "Penalised"], given, given.parts["validation"].labels)
    assert made["Penalised"].measure == LogLoss()
    compared = compare(given, made, levels=["0.2"], n_splits=1)
    for name in made:
        row = compared.row(name, "0.2")
        assert row.error[0] < 0.4
        assert row.mean_size[0] <= 6
        assert row.s_excess is not None
