"""The figures of the paper, from result files alone: errors, N criterion, and the load of its search."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surelabel import plots
from surelabel._core.files import atomic_file
from surelabel.experiments.run import Result
from surelabel.experiments.tables import by_corpus, measures_of
from surelabel.plots._canvas import SERIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_figures(results: Iterable[Result], folder: Path) -> list[Path]:
    """Draw errors and sizes of each corpus and classifier, and the load of the paper's search; return the files."""
    paths, shapes = [], {}
    for corpus, classifier, group in by_corpus(results, conformal=True):
        errors, sizes, n_texts = {}, {}, group[0]["n_texts"]
        shapes[corpus] = group[0]["n_labels"], group[0]["max_labels"]
        for measure in measures_of(group):
            curves = [result["evaluations"][measure]["curve"] for result in group]
            levels = [float(point["significance"]) for point in curves[0]]
            errors[measure] = levels, np.mean([[point["error"] for point in curve] for curve in curves], axis=0)
            sizes[measure] = levels, np.mean([[point["sizes"]["mean"] for point in curve] for curve in curves], axis=0)
        if errors:
            name, title = f"{corpus}-{classifier}", f"{corpus}, {classifier}: "
            texts = f"On the {n_texts['test']:,} test texts, after calibration on {n_texts['calibration']:,}."
            curve = plots.error_curve(errors, n_texts=n_texts["test"], n_calibration=n_texts["calibration"])
            paths.append(_write(curve, folder / f"{name}-errors.svg", f"{title}error rate", texts))
            curve = plots.size_curve(sizes)
            paths.append(_write(curve, folder / f"{name}-sizes.svg", f"{title}mean number of label-sets", texts))
    if shapes:
        chosen = dict(list(shapes.items())[: len(SERIES)])
        load, description = plots.search_load(chosen), "Label-sets that the search considers for a text, by its radius."
        paths.append(_write(load, folder / "search-load.svg", "Load of the paper's search", description))
    return paths


def _write(figure: Figure, path: Path, title: str, description: str) -> Path:
    svg = plots.to_svg(figure, name=path.stem, title=title, description=description, ink="#777777")
    with atomic_file(path) as stream:
        stream.write(svg)
    return path
