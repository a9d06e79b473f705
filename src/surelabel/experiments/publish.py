"""Tables, figures and README's part of them, from result files alone: the same files give the same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from surelabel import plots
from surelabel._core.storage import atomic_file
from surelabel.evaluation.evaluate import Evaluation
from surelabel.exceptions import InvalidInputError
from surelabel.experiments.benchmark_tables import benchmark_tables
from surelabel.experiments.compare import comparisons_table, load_comparisons, sizes_table
from surelabel.experiments.findings import guarantee, log_loss_against_norms
from surelabel.experiments.run import N_RESPLITS
from surelabel.experiments.statistics import corpora_table
from surelabel.experiments.summary import beside_paper, beside_rivals, beside_speeds
from surelabel.experiments.tables import LEVELS, Result, Table, all_tables, by_corpus, load_results, measures_of

__all__ = ["page_part", "publish", "readme_part"]

_BEGIN, _END = "<!-- figures: made by `surelabel reproduce --publish` -->", "<!-- /figures -->"
# Visible on white and on black, where a page gives a picture no colour of its own.
_INK = "#777777"


def _write(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with atomic_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _evaluations(result: Result) -> dict[str, Evaluation]:
    """Return a run's evaluations by measure."""
    return {name: Evaluation.from_dict(values) for name, values in result["evaluations"].items()}


def _figures(results: list[Result], folder: Path) -> list[str]:
    """Draw error rate and N criterion against significance for the first seed of each conformal run; return names."""
    names = []
    for result in results:
        run = result["run"]
        if not run["conformal"] or run["seed"] != 0:
            continue
        evaluations = _evaluations(result)
        name = f"{run['corpus']}-{run['classifier']}"
        title = f"{run['corpus']}, {run['classifier']}"
        drawn = {
            "error": plots.error_curve(evaluations),
            "size": plots.size_curve(evaluations),
        }
        for kind, figure in drawn.items():
            svg = plots.to_svg(figure, name=f"{name}-{kind}", title=f"{title}: {kind} against significance", ink=_INK)
            _write(folder / f"{name}-{kind}.svg", svg + "\n")
        names.append(name)
    shapes = {
        result["run"]["corpus"]: (result["n_labels"], result["max_labels"])
        for result in results
        if result["run"]["conformal"]
    }
    if shapes:
        svg = plots.to_svg(plots.search_load(shapes), name="load", title="Label-sets considered against t", ink=_INK)
        _write(folder / "load.svg", svg + "\n")
    _draw_overview(results, folder / "overview.svg")
    return names


def _draw_overview(results: list[Result], path: Path) -> None:
    """Draw what the first corpus' classifiers show with LogLoss: errors over re-splits, and sizes of sets."""
    groups = [
        (corpus, classifier, group)
        for corpus, classifier, group in by_corpus(results, conformal=True)
        if "LogLoss" in measures_of(group) and float(LEVELS[0]) * (group[0]["n_texts"]["calibration"] + 1) > 1
    ]
    first = {classifier: group[0] for corpus, classifier, group in groups if corpus == groups[0][0]}
    if not first:
        return
    evaluations = {name: _evaluations(result)["LogLoss"] for name, result in first.items()}
    errors = {
        name: [result["resplits"]["LogLoss"]["errors"][level] for level in LEVELS] for name, result in first.items()
    }
    figure = plots.overview(evaluations, errors, LEVELS)
    title = f"{groups[0][0]}: errors asked for and seen, and label-sets left for a text"
    _write(path, plots.to_svg(figure, name="overview", title=title, ink=_INK) + "\n")


def _only(table: Table, **wanted: str) -> Table:
    """Return the rows of a table with these values in these columns."""
    places = {table.header.index(column): value for column, value in wanted.items()}
    rows = tuple(row for row in table.rows if all(row[place] == value for place, value in places.items()))
    return Table(table.name, table.title, table.header, rows, table.note)


def _section(table: Table, opening: str) -> list[str]:
    """Return a table in Markdown below what is to be said of it."""
    return [opening, "", table.to_markdown(), ""]


def _named(figures: list[str], kinds: Mapping[str, str], folder: str) -> list[str]:
    """Return lines that show figures of Reuters, of the first corpus where there are none."""
    shown = [name for name in figures if name.startswith("reuters-")][:1] or figures[:1]
    return [f"![{text}, {name}]({folder}/{name}-{kind}.svg)" for name in shown for kind, text in kinds.items()]


def readme_part(summary: list[Table]) -> str:
    """Return README's part: what fits on one page, beside the paper, other methods and other implementations."""
    lines = [line for table in summary for line in _section(table, f"**{table.title}.** {table.note}")]
    return "\n".join([*lines, "All tables, figures and what they mean: [docs/results.md](docs/results.md).", ""])


def page_part(tables: list[Table], figures: list[str]) -> str:
    """Return the part of a page of results: every main table, and two figures."""
    by_name = {table.name: table for table in tables}
    openings = {
        "without-icp": "Classifiers without conformal prediction, on the test parts, beside the paper's figures:",
        "sets": "Prediction sets at significance 0.05. *Own test* is the corpus' own test part, which for Reuters is "
        "later in time than what the classifier and the calibration saw; *re-splits* are "
        f"{N_RESPLITS} random re-splits of calibration and test texts (mean ± standard deviation; N over the first "
        "ten), for which the guarantee is meant:",
        "forced": "The best label-set alone, with its confidence and credibility for each measure:",
        "comparisons-at-0.05": "{title}, measures and rivals side by side. {note}",
        "engine": "The exact search beside the paper's. {note}",
        "lean-ball": "{note}",
        "watch": "The exchangeability watch. {note}",
        "text": "The text classifiers. {note}",
        "service": "The service under load. {note}",
    }
    lines = []
    for name, opening in openings.items():
        if name in by_name:
            table = by_name[name]
            chosen = _only(table, significance="0.05") if name == "sets" else table
            lines += _section(chosen, opening.format(title=table.title, note=table.note))
    kinds = {"error": "error rate against significance", "size": "number of label-sets against significance"}
    lines += [*_named(figures, kinds, "../results/figures"), ""]
    return "\n".join([*lines, "All tables: `results/tables/`; what they are made from: `results/runs/`.", ""])


def _put(part: str, page: Path) -> None:
    """Put a part between the two lines of a page that are there for it."""
    text = page.read_text(encoding="utf-8")
    if _BEGIN not in text or _END not in text:
        raise InvalidInputError(f"{page} must hold the lines {_BEGIN!r} and {_END!r} for figures to go between.")
    before, after = text.split(_BEGIN, 1)[0], text.split(_END, 1)[1]
    _write(page, f"{before}{_BEGIN}\n\n{part}\n{_END}{after}")


def publish(runs: Path, out: Path, readme: Path | None = None, page: Path | None = None) -> list[Table]:
    """Build all tables and figures from the result files in `runs`.

    The few that fit on one page go into a README where one is given, the main ones into a page of results.
    """
    results = load_results(runs)
    compared = load_comparisons(runs.parent / "comparisons")
    found = [guarantee(results), log_loss_against_norms(results), comparisons_table(compared), sizes_table(compared)]
    summary = [beside_paper(results), beside_rivals(compared), beside_speeds(runs.parent)]
    tables = [corpora_table(runs.parent / "corpora.json"), *all_tables(results), *found, *summary]
    tables = [table for table in tables if table.rows] + benchmark_tables(runs.parent)
    for table in tables:
        note = f"\n{table.note}\n" if table.note else ""
        _write(out / "tables" / f"{table.name}.md", f"# {table.title}\n\n{table.to_markdown()}\n{note}")
        _write(out / "tables" / f"{table.name}.csv", table.to_csv())
    figures = _figures(results, out / "figures")
    if readme is not None:
        _put(readme_part([table for table in summary if table.rows]), readme)
    if page is not None:
        _put(page_part(tables, figures), page)
    return tables
