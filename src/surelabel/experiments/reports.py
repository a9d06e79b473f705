"""The report of a conformal run, from its probabilities and its result file."""

from __future__ import annotations

import json
from pathlib import Path

from surelabel import corpora
from surelabel.evaluation.evaluate import Evaluation
from surelabel.experiments.run import Folders, probabilities_of
from surelabel.experiments.settings import IN_TIME_ORDER, Settings
from surelabel.measures import MEASURES
from surelabel.models.steps import calibrated
from surelabel.report import ReportInput, write_report


def report_run(settings: Settings, folders: Folders) -> Path:
    """Write the HTML report of a finished conformal run beside its probabilities; return its path.

    A report that is newer than the result file is left alone. If there is only the result file, as in a new copy of the
    repository, the probabilities are made again.
    """
    path = folders.runs / settings.name / "report.html"
    if path.is_file() and path.stat().st_mtime >= folders.result_of(settings).stat().st_mtime:
        return path
    probabilities = probabilities_of(settings, folders)
    result = json.loads(folders.result_of(settings).read_text(encoding="utf-8"))
    corpus = corpora.load(settings.corpus, seed=settings.seed)
    calibration, test = probabilities.parts["calibration"], probabilities.parts["test"]
    names = [name for name in result["evaluations"] if name in MEASURES]
    predictors = {
        name: calibrated(
            MEASURES[name], calibration, max_labels=probabilities.max_labels, label_names=probabilities.label_names
        )
        for name in sorted(names, key=lambda name: name != "LogLoss")
    }
    write_report(
        path,
        ReportInput(
            title=f"{settings.corpus}, {settings.classifier}",
            predictors=predictors,
            probabilities=test.probabilities,
            labels=test.labels,
            texts=corpus.part("test").texts,
            settings={"seed": settings.seed, **probabilities.settings["classifier"]},
            provenance=probabilities.settings["corpus"],
            evaluations={name: Evaluation.from_dict(result["evaluations"][name]) for name in names},
            resplits={name: result["resplits"][name]["errors"] for name in names},
            in_order=settings.corpus in IN_TIME_ORDER,
            other_texts={name: corpus.part(name).texts for name in ("train", "validation", "calibration")},
        ),
    )
    return path
