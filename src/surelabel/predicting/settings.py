"""What is asked about texts, and how the answers are written: the same for one file and for many."""

from __future__ import annotations

import dataclasses
from typing import Any

from surelabel._core.validation import as_fraction, as_significance
from surelabel.exceptions import InvalidInputError
from surelabel.tables.columns import Columns
from surelabel.tables.write import OUTPUT_FORMATS

_WHO = "PredictSettings"


@dataclasses.dataclass(frozen=True)
class PredictSettings:
    """What is asked about each text, where the texts are, and how the answers are written.

    Parameters
    ----------
    significance, confidence_level
        Share of texts whose true label-set a prediction set may miss, or 1 minus that; at most one of the two. Without
        them answers have no prediction set.
    assurance
        Probability that no larger share is missed with this very calibration.
    top : int
        Plausible label-sets to list with their p-values, best first.
    group : str, optional
        Group of all texts, for a model that is calibrated by groups; otherwise `columns.group` names its column.
    with_text : bool
        Repeat the text in its record.
    columns : Columns
    on_error : {"stop", "skip"}
        On a row that cannot be used: stop, or list it in OUT.skipped.jsonl.
    separator : str
        Between labels in a cell of CSV, TSV and XLSX.
    format : {"jsonl", "csv", "tsv", "xlsx", "parquet"}, optional
        Of the output; by default what its suffix says.
    kind, encoding : str
        Of the input; the kind is by default what its suffix says.
    batch_size : int
        Texts that are answered at once.
    """

    significance: Any = None
    confidence_level: Any = None
    assurance: Any = None
    top: int = 5
    group: str | None = None
    with_text: bool = False
    columns: Columns = dataclasses.field(default_factory=Columns)
    on_error: str = "stop"
    separator: str = ","
    format: str | None = None
    kind: str | None = None
    encoding: str = "utf-8"
    batch_size: int = 256

    def __post_init__(self) -> None:
        if self.has_sets:
            as_significance(self.significance, self.confidence_level, _WHO)
        if self.assurance is not None:
            as_fraction(self.assurance, "assurance", _WHO)
            if not self.has_sets:
                raise InvalidInputError("An assurance needs a level: add significance (--significance).")
        for name, allowed in (("on_error", ("stop", "skip")), ("format", (None, *OUTPUT_FORMATS))):
            if getattr(self, name) not in allowed:
                names = ", ".join(filter(None, allowed))
                raise InvalidInputError(f"The '{name}' must be one of {names}. Got {getattr(self, name)!r} instead.")
        for name, least in (("top", 0), ("batch_size", 1)):
            if getattr(self, name) < least:
                raise InvalidInputError(f"The '{name}' must be {least} or more. Got {getattr(self, name)} instead.")

    @property
    def has_sets(self) -> bool:
        """Whether prediction sets are asked for."""
        return self.significance is not None or self.confidence_level is not None

    def identity(self) -> dict[str, Any]:
        """Return what records depend on as plain values; levels exactly."""
        values = dataclasses.asdict(self)
        del values["batch_size"], values["confidence_level"]
        level = as_significance(self.significance, self.confidence_level, _WHO) if self.has_sets else None
        values["significance"] = None if level is None else str(level)
        values["assurance"] = None if self.assurance is None else str(as_fraction(self.assurance, "assurance", _WHO))
        values["columns"]["text"] = list(self.columns.text)
        return values

    def check_labels(self, bundle: Any, kind: str) -> None:
        """Raise unless a model's labels, and their URIs, can be told apart in a cell of this kind of file."""
        if kind in {"jsonl", "parquet"}:
            return
        if not self.separator:
            raise InvalidInputError("The separator between labels must not be empty.")
        names = (*bundle.label_names, *filter(None, bundle.uris or ()))
        clash = next((name for name in names if self.separator in name), None)
        if clash is not None:
            raise InvalidInputError(
                f"The label {clash!r} contains the separator {self.separator!r}. Write .jsonl or .parquet, or choose "
                "another separator."
            )
