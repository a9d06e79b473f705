"""What is known of a bundle beside its arrays: where it comes from and how it was made."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from surelabel.answers import exact_level
from surelabel.exceptions import ArtifactError, InvalidInputError

# Fields that bundles of the first versions do not have, and what held there.
_ADDED: dict[str, Any] = {"listed": None, "drawn": {}, "level": None, "short_lists": {}, "verdict": {}}
_ADDED |= {"group_column": None, "label_texts": {}}


@dataclasses.dataclass(frozen=True)
class BundleInfo:
    """Where a bundle comes from and how it was made: plain values.

    Attributes
    ----------
    name : str
        Of the model, for people.
    kind : str
        Of the classifier: linear, randinit, word2vec or bert.
    created : str
        Date and time in UTC, ISO 8601.
    versions : mapping of package to version
    settings : mapping
        Of the classifier.
    corpus, fingerprint : str
        Name and fingerprint of the corpus that the classifier was trained on.
    provenance : mapping
        Of that corpus: source, rule, licence, checksum, notes.
    part_sizes : mapping of part name to number of texts
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
        Labels whose probabilities are listed for each text, the highest; all others are taken as 0. None where all
        probabilities are used.
    drawn : mapping of part name to size
        How test, validation and calibration part were drawn from the corpus: numbers of texts, or shares, and 0 where
        none was drawn.
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
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: _plain(value) for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: Any) -> BundleInfo:
        """Return the inverse of `to_dict`; anything else is refused."""
        fields = {field.name: str(field.type) for field in dataclasses.fields(cls)}
        if isinstance(values, dict):
            values = {**_ADDED, **values}
        if not isinstance(values, dict) or set(values) != set(fields):
            raise ArtifactError(f"The description of a bundle must have the fields {', '.join(fields)}.")
        checked = {name: _as_kind(values[name], kind, name) for name, kind in fields.items()}
        try:
            if checked["level"] is not None:
                exact_level(checked["level"])
            is_list = set(checked["short_lists"]) <= {"max_choices", "max_tags"}
            if not is_list or not all(type(longest) is int for longest in checked["short_lists"].values()):
                raise InvalidInputError(f"its 'short_lists' are {checked['short_lists']!r:.60}")
        except InvalidInputError as error:
            raise ArtifactError(f"The description of a bundle is damaged: {error}") from error
        return cls(**checked)


def _plain(value: Any) -> Any:
    """Return mappings and tuples as dictionaries and lists."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value


def _as_kind(value: Any, kind: str, name: str) -> Any:
    """Return a value of JSON as its field's type wants it."""
    expected: dict[str, tuple[type, ...]] = {
        "str": (str,),
        "str | None": (str, type(None)),
        "int | None": (int, type(None)),
        "tuple": (list,),
    }
    allowed = expected.get(kind, (list,) if kind.startswith("tuple") else (dict,))
    texts = not kind.startswith("tuple") or (isinstance(value, list) and all(isinstance(each, str) for each in value))
    if not isinstance(value, allowed) or isinstance(value, bool) or not texts:
        raise ArtifactError(f"The description of a bundle is damaged: its '{name}' is {value!r:.60}.")
    return tuple(value) if isinstance(value, list) else value
