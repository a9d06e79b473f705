"""What is known of a bundle beside its arrays: where it comes from and how it was made."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from surelabel.answers import exact_level
from surelabel.exceptions import ArtifactError, InvalidInputError

# Fields that bundles of the first versions do not have.
_ADDED = {"listed", "drawn", "level", "short_lists", "verdict", "group_column", "label_texts"}


@dataclasses.dataclass(frozen=True)
class BundleInfo:
    """Where a bundle comes from and how it was made: plain values.

    Attributes
    ----------
    name, kind : str
        Of the model, for people, and of its classifier: "linear", "bert" and so on.
    created : str
        Date and time in UTC, ISO 8601.
    versions, settings : mapping
        Of packages, and of the classifier.
    corpus, fingerprint, provenance, part_sizes
        Of the corpus that the classifier was trained on.
    seed : int or None
        Of the parts that were drawn and of training.
    measure : str
        Name of the nonconformity measure.
    calibrated_on, evaluated_on : mapping
        Corpus, fingerprint, part and n_texts of the calibration and of the evaluation.
    notes : tuple of str
        What a user of the model should know, such as texts that stand in two parts.
    examples : tuple of str
        A few texts to try the model with.
    listed : int or None
        Labels whose probabilities are listed for each text, the highest; all others are taken as 0. None uses all.
    drawn : mapping of part name to size
        How parts were drawn from the corpus: numbers of texts, or shares, and 0 if none was drawn.
    level : str or None
        Significance of answers if none is given: the recommended one. None in bundles of older versions.
    short_lists : mapping
        How long a short list may be: `max_choices` and `max_tags` of `Decisions`, if they were set.
    verdict : mapping
        What the model is good for, see `surelabel.models.verdict`; empty if nothing certifies decisions.
    group_column : str or None
        Column of a table that says the group of each text, if the bundle is calibrated by groups.
    label_texts : mapping of label name to number of texts
        Training texts of each label; empty in bundles of older versions.
    """

    name: str
    kind: str
    created: str
    versions: Mapping[str, str]
    settings: Mapping[str, Any]
    corpus: str
    fingerprint: str
    provenance: Mapping[str, Any]
    part_sizes: Mapping[str, int]
    seed: int | None
    measure: str
    calibrated_on: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    evaluated_on: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    notes: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    listed: int | None = None
    drawn: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    level: str | None = None
    short_lists: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    verdict: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    group_column: str | None = None
    label_texts: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        values: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(self)))
        return values

    @classmethod
    def from_dict(cls, values: Any) -> BundleInfo:
        """Return the inverse of `to_dict`; anything else is refused."""
        kinds = {field.name: str(field.type) for field in dataclasses.fields(cls)}
        if not isinstance(values, dict) or not set(kinds) - _ADDED <= set(values) <= set(kinds):
            raise ArtifactError(f"The description of a bundle must have the fields {', '.join(kinds)}.")
        info = cls(**{name: _as_kind(value, kinds[name], name) for name, value in values.items()})
        try:
            if info.level is not None:
                exact_level(info.level)
            longest = info.short_lists
            if not set(longest) <= {"max_choices", "max_tags"} or any(
                type(most) is not int for most in longest.values()
            ):
                raise InvalidInputError(f"its 'short_lists' are {longest!r:.60}")
        except InvalidInputError as error:
            raise ArtifactError(f"The description of a bundle is damaged: {error}") from error
        return info


def _as_kind(value: Any, kind: str, name: str) -> Any:
    """Return a value of JSON as its field's type wants it."""
    plain = {"str": (str,), "str | None": (str, type(None)), "int | None": (int, type(None))}
    if kind.startswith("tuple"):
        is_such = isinstance(value, list) and all(isinstance(one, str) for one in value)
    else:
        is_such = isinstance(value, plain.get(kind, (dict,))) and not isinstance(value, bool)
    if not is_such:
        raise ArtifactError(f"The description of a bundle is damaged: its '{name}' is {value!r:.60}.")
    return tuple(value) if isinstance(value, list) else value
