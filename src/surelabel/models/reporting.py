"""The report on a model's figures."""

from __future__ import annotations

import dataclasses
import datetime
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surelabel._core import progress
from surelabel.conformal import ConformalLabelSets
from surelabel.corpora import Corpus, Part
from surelabel.evaluation.predicted import Predicted
from surelabel.exceptions import MissingDependencyError
from surelabel.models.bundle import Bundle
from surelabel.probabilities_file import PartProbabilities

_log = logging.getLogger(__name__)


def report_on(
    path: Path,
    bundle: Bundle,
    predictors: Mapping[str, ConformalLabelSets],
    part: PartProbabilities,
    predicted: Predicted,
    held_out: Part,
    corpus: Corpus,
) -> Path:
    """Write the report on a bundle's evaluation on held-out texts; return its path.

    Who is missed is said by the figures of the report itself, not by the verdict.
    """
    from surelabel.report import ReportInput, write_report  # noqa: PLC0415 (matplotlib, which may be missing)

    info = bundle.info
    is_own = corpus.fingerprint() == info.fingerprint
    others = [name for name in corpus.parts if is_own and name not in held_out.name.split("+")]
    content = ReportInput(
        title=info.name if is_own else f"{info.name} on {corpus.name}",
        predictors=predictors,
        probabilities=part.probabilities,
        labels=part.labels,
        texts=held_out.texts,
        ids=held_out.ids,
        date=datetime.date.today().isoformat(),
        verdict=[said for said in info.verdict.get("words", []) if not said.startswith("The promise of")],
        groups=part.groups,
        predicted=predicted,
        settings={"classifier": info.kind, **info.settings, "listed labels": info.listed or "all"},
        provenance={
            "corpus": corpus.name,
            "part": held_out.name,
            "fingerprint": corpus.fingerprint(),
            **dataclasses.asdict(corpus.provenance),
        },
        evaluations=bundle.evaluation or {},
        other_texts={name: corpus.part(name).texts for name in others},
    )
    with progress.step("writing the report"):
        write_report(path, content)
    return path


def try_report(path: Path, *given: Any) -> Path | None:
    """Write the report, see `report_on`; if what it needs is not installed, say so and continue without."""
    try:
        return report_on(path, *given)
    except MissingDependencyError as error:
        _log.warning("there is no report: %s", error)
        return None
