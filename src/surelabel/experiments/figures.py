"""The figures of the paper, from result files alone: error and N curves of each corpus and classifier."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from surelabel import plots
from surelabel._core.files import atomic_file
from surelabel.experiments.run import Result
from surelabel.experiments.tables import by_corpus, measures_of


def write_figures(results: Iterable[Result], folder: Path) -> list[Path]:
    """Draw the error rate and the mean size against the significance, for each measure; return the files."""
    paths = []
    for corpus, classifier, group in by_corpus(results, conformal=True):
        errors, sizes = {}, {}
        for measure in measures_of(group):
            curves = [result["evaluations"][measure]["curve"] for result in group]
            levels = [float(point["significance"]) for point in curves[0]]
            errors[measure] = levels, np.mean([[point["error"] for point in curve] for curve in curves], axis=0)
            sizes[measure] = levels, np.mean([[point["sizes"]["mean"] for point in curve] for curve in curves], axis=0)
        if not errors:
            continue
        n_texts = group[0]["n_texts"]
        drawn = {
            "errors": plots.error_curve(errors, n_texts=n_texts["test"], n_calibration=n_texts["calibration"]),
            "sizes": plots.size_curve(sizes),
        }
        for kind, figure in drawn.items():
            name = f"{corpus}-{classifier}-{kind}"
            title = f"{corpus}, {classifier}: {'error rate' if kind == 'errors' else 'mean number of label-sets'}"
            description = f"On the {n_texts['test']:,} test texts, after calibration on {n_texts['calibration']:,}."
            paths.append(folder / f"{name}.svg")
            with atomic_file(paths[-1]) as stream:
                stream.write(plots.to_svg(figure, name=name, title=title, description=description, ink="#777777"))
    return paths
