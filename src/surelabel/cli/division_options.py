"""The options that say how a model is calibrated by categories, and what is said about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from surelabel._core.levels import MAIN_LEVEL
from surelabel._core.validation import as_level, as_share

if TYPE_CHECKING:
    from surelabel.conformal import ConformalLabelSets
    from surelabel.models import Division

By = Annotated[
    str | None,
    typer.Option(
        "--by", metavar="COLUMN", help="Keep the promise in every group: a column such as source or customer."
    ),
]
ByCardinality = Annotated[
    bool,
    typer.Option("--by-cardinality", help="Keep the promise for label-sets of one, two, and three or more labels."),
]
CardinalityEdges = Annotated[
    str | None, typer.Option(metavar="N,N", help="The same, with kinds that begin at other numbers of labels.")
]
ByRarity = Annotated[
    bool,
    typer.Option("--by-rarity", help="Keep the promise for label-sets of rare labels too (10, 100 training texts)."),
]
RarityEdges = Annotated[
    str | None, typer.Option(metavar="N,N", help="The same, with kinds that begin at other numbers of training texts.")
]
MinTexts = Annotated[
    int,
    typer.Option(
        min=0,
        help="Join categories with fewer calibration texts: groups into 'other groups', kinds with the next one "
        "[default: join none].",
    ),
]


def as_division(
    by: str | None,
    by_cardinality: bool,
    cardinality_edges: str | None,
    by_rarity: bool,
    rarity_edges: str | None,
    min_texts: int,
) -> Division | None:
    """Return the division that options ask for, None if they ask for none."""
    from surelabel.models import Division  # noqa: PLC0415 (importing it takes a second)
    from surelabel.models.dividing import CARDINALITIES, RARITIES  # noqa: PLC0415

    cardinality = _edges(cardinality_edges, "--cardinality-edges") or (CARDINALITIES if by_cardinality else ())
    rarity = _edges(rarity_edges, "--rarity-edges") or (RARITIES if by_rarity else ())
    if not (by or cardinality or rarity or min_texts):
        return None
    return Division(by, cardinality, rarity, min_texts)


def _edges(given: str | None, option: str) -> tuple[int, ...]:
    """Return whole numbers from a list such as 1,2,3."""
    if given is None:
        return ()
    try:
        return tuple(int(number) for number in given.split(","))
    except ValueError:
        raise typer.BadParameter(f"expected whole numbers such as 1,2,3; got {given!r}", param_hint=option) from None


def calibration_words(predictor: ConformalLabelSets, assurance: str = "0.95") -> str:
    """Say what a significance acts as with assurance, or how many categories there are.

    Examples
    --------
    >>> from surelabel import ConformalLabelSets
    >>> predictor = ConformalLabelSets().calibrate([[0.9, 0.2], [0.4, 0.8]] * 100, [[1, 0], [0, 1]] * 100)
    >>> calibration_words(predictor)
    'For this calibration, not only on average over calibrations: predict --assurance 0.95. Significance 0.05 then ...'
    """
    from surelabel.calibration import fewest_assured, rank_of  # noqa: PLC0415 (importing it takes a second)

    level, share = as_level(MAIN_LEVEL, None, who="train"), as_share(assurance, "assurance", who="train")
    calibration = predictor.calibration_
    if calibration.categories is not None:
        sizes = sorted(len(totals) for totals in calibration.categories.table.values())
        return (
            f"Calibrated by {calibration.categories.taxonomy!r}: {len(sizes):,} categories of {sizes[0]:,} to "
            f"{sizes[-1]:,} calibration texts."
        )
    rank = rank_of(calibration.n_texts, level, share)
    if rank == 0:
        return (
            f"{calibration.n_texts:,} calibration texts are too few for {float(share):.0%} assurance at significance "
            f"{MAIN_LEVEL}: {fewest_assured(level, share):,} are needed."
        )
    acts_as = rank / (calibration.n_texts + 1)
    return (
        f"For this calibration, not only on average over calibrations: predict --assurance {assurance}. Significance "
        f"{MAIN_LEVEL} then acts as {acts_as:.3f}, with {calibration.n_texts:,} calibration texts."
    )
