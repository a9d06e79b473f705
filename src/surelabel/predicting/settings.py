"""What is asked about texts, and how the answers are written: the same for one file and for a data set."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from surelabel._core.validation import as_share
from surelabel.answers import exact_level
from surelabel.conformal import ConformalLabelSets
from surelabel.exceptions import InvalidInputError
from surelabel.tables.reading import FORMATS
from surelabel.tables.texts import InputColumns, unknown_group
from surelabel.tables.writing import OUTPUT_FORMATS

ON_ERROR = ("stop", "skip", "mark")


@dataclasses.dataclass(frozen=True)
class AnswerSettings:
    """What is asked about each text, where the texts are, and how the answers are written.

    Parameters
    ----------
    significance, confidence_level
        Share of texts whose true label-set may be missed; or 1 minus that. At most one of the two; the model's own
        level by default.
    top, max_open : int
        Most plausible label-sets and open labels to name per text, best first; `n_more_open` counts the other labels.
    with_text, describe : bool
        Whether a record repeats the text, and whether it has the prediction set in a sentence, as `description`.
    p_value_of : sequence of str, optional
        A label-set whose p-value is given for each text.
    assurance
        Probability, over calibrations, that no larger share of texts is missed; see `ConformalLabelSets.predict_set`.
    group : str, optional
        The group of all texts, for a model that is calibrated by groups; else `columns` names the column that says it.
    columns : InputColumns
    on_error : {"stop", "skip", "mark"}
        What a row that cannot be read leads to: an error; no answer and an entry in a list of skipped rows; or a record
        that has only its row and the `error`.
    separator : str
        Between labels in a cell of CSV and XLSX.
    raw_cells : bool
        Whether cells of CSV that begin with = + - @ or a tab stay as they are; if not, an apostrophe comes before them.
    format : {"jsonl", "csv", "parquet", "xlsx"}, optional
        Of the output. By default what the suffix of a file says, and Parquet in a data set, which cannot be XLSX.
    input_format : {"txt", "jsonl", "csv", "tsv", "parquet", "xlsx"}, optional
        Of the input files, if their suffixes do not say it.
    batch_size, partition_bytes : int
        Texts at a time; and about how much of a file is one partition of a data set, see `plan_partitions`.

    Examples
    --------
    >>> AnswerSettings(confidence_level="0.9", top=1).significance
    '0.1'
    """

    significance: Any = None
    top: int = 5
    with_text: bool = False
    describe: bool = False
    confidence_level: Any = None
    max_open: int = 20
    p_value_of: Sequence[str] | None = None
    columns: InputColumns = dataclasses.field(default_factory=InputColumns)
    on_error: str = "stop"
    separator: str = ","
    raw_cells: bool = False
    format: str | None = None
    input_format: str | None = None
    batch_size: int = 512
    partition_bytes: int = 32 * 2**20
    assurance: Any = None
    group: str | None = None

    def __post_init__(self) -> None:
        given = (self.significance, self.confidence_level)
        level = exact_level(*given) if any(value is not None for value in given) else None
        object.__setattr__(self, "significance", level)
        object.__setattr__(self, "confidence_level", None)
        if self.assurance is not None:
            as_share(self.assurance, "assurance", who="AnswerSettings")
            object.__setattr__(self, "assurance", str(self.assurance))
        if self.p_value_of is not None:
            object.__setattr__(self, "p_value_of", tuple(self.p_value_of))
        if self.on_error not in ON_ERROR:
            raise InvalidInputError(f"The 'on_error' must be 'stop', 'skip' or 'mark'. Got {self.on_error!r} instead.")
        for name, formats in (("format", OUTPUT_FORMATS), ("input_format", FORMATS)):
            if getattr(self, name) not in {None, *formats}:
                raise InvalidInputError(
                    f"The {name!r} must be one of {', '.join(formats)}. Got {getattr(self, name)!r} instead."
                )
        for name, least in (("top", 0), ("max_open", 0), ("batch_size", 1), ("partition_bytes", 1)):
            if getattr(self, name) < least:
                raise InvalidInputError(f"The {name!r} must be {least} or more. Got {getattr(self, name)} instead.")

    def identity(self) -> dict[str, Any]:
        """Return the settings that records depend on, as plain values."""
        values = dataclasses.asdict(self)
        for name in ("confidence_level", "batch_size", "partition_bytes"):
            del values[name]
        plain: dict[str, Any] = json.loads(json.dumps(values))
        return plain

    def check_model(self, predictor: ConformalLabelSets, kind: str | None) -> None:
        """Raise unless a model has the labels and groups that are asked for, and labels in a cell can be told apart."""
        categories = predictor.calibration_.categories
        has_groups = categories is not None and categories.taxonomy.by_group
        if self.group is not None and not has_groups:
            raise InvalidInputError(f"The model is not calibrated by groups. Got the group {self.group!r}.")
        if categories is not None and self.group not in {None, *categories.groups} and not categories.has_others:
            problem = unknown_group(str(self.group), categories.groups)
            raise InvalidInputError(f"{problem[:1].upper()}{problem[1:]}")
        label_names = predictor.calibration_.label_names or ()
        unknown = set(self.p_value_of or ()).difference(label_names)
        if unknown:
            shown = ", ".join(label_names[:12]) + (", ..." if len(label_names) > 12 else "")
            raise InvalidInputError(f"A p-value is of labels of the model ({shown}). Got {min(unknown)!r} instead.")
        if kind not in {"csv", "xlsx"}:
            return
        if not self.separator:
            raise InvalidInputError("The --separator between labels in a cell must not be empty.")
        name = next((name for name in label_names if self.separator in name), None)
        if name is not None:
            raise InvalidInputError(
                f"The label {name!r} has the separator {self.separator!r} in it, so that labels in a cell could not be "
                "told apart. Choose another with --separator, or write .jsonl or .parquet."
            )
