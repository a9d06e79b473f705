"""The calibration of categories: sorted totals of the calibration texts of each group and kind of label-set."""

from __future__ import annotations

import dataclasses
import functools
import math
import warnings
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from surelabel._core.validation import FloatArray, IntArray
from surelabel.calibration import p_values_among, thresholds_of
from surelabel.exceptions import CalibrationWarning, InvalidInputError
from surelabel.taxonomies.kinds import Taxonomy

_MOST_NAMED = 5


def as_groups(groups: Any, taxonomy: Taxonomy | None, n_texts: int, *, who: str) -> tuple[str, ...] | None:
    """Return the group of each text as strings, None if the taxonomy has no groups."""
    if taxonomy is None or not taxonomy.by_group:
        if groups is not None:
            raise InvalidInputError(
                f"The 'groups' parameter of {who} is for predictors with a taxonomy by groups, such as "
                f"ConformalLabelSets(taxonomy=ByGroup()). This one has {taxonomy!r}."
            )
        return None
    if groups is None:
        raise InvalidInputError(f"The 'groups' parameter of {who} must hold the group of each text. Got None instead.")
    values = groups.tolist() if hasattr(groups, "tolist") else list(groups)
    if len(values) != n_texts:
        raise InvalidInputError(
            f"The 'groups' parameter of {who} must hold the group of each of {n_texts} texts. Got {len(values)} groups."
        )
    for row, value in enumerate(values):
        if value is None or value != value or value == "":  # noqa: PLR0124 (not a number is not equal to itself)
            raise InvalidInputError(
                f"The 'groups' parameter of {who} must hold a group for each text. Got {value!r} for text {row} "
                "instead; give such texts a group of their own."
            )
    return tuple(str(value) for value in values)


@dataclasses.dataclass(frozen=True, eq=False)
class Categories:
    """Calibration totals, ascending, by (group, kind); the group is "" if texts are not divided by groups."""

    taxonomy: Taxonomy
    totals: dict[tuple[str, int], FloatArray]

    @classmethod
    def of(cls, taxonomy: Taxonomy, totals: FloatArray, labels: Any, groups: Sequence[str] | None) -> Categories:
        """Divide calibration texts by the kinds of their true label-sets."""
        kinds = taxonomy.kinds_of(labels)
        names = np.array(groups if groups is not None else [""] * len(totals))
        divided = {}
        for group, kind in sorted(set(zip(names.tolist(), kinds.tolist(), strict=True))):
            divided[group, kind] = np.sort(totals[(names == group) & (kinds == kind)])
        return cls(taxonomy, divided)

    @classmethod
    def merged(cls, parts: Sequence[Categories]) -> Categories:
        """Return the categories of all texts of several."""
        first = parts[0]
        for part in parts[1:]:
            if part.taxonomy != first.taxonomy:
                raise InvalidInputError(
                    "Only calibrations with the same taxonomy can be merged. Got "
                    f"{first.taxonomy!r} and {part.taxonomy!r}."
                )
        keys = sorted({key for part in parts for key in part.totals})
        empty = np.empty(0)
        joined = {key: np.sort(np.concatenate([part.totals.get(key, empty) for part in parts])) for key in keys}
        return cls(first.taxonomy, joined)

    @functools.cached_property
    def groups(self) -> tuple[str, ...]:
        """Groups with calibration texts, in order."""
        return tuple(sorted({group for group, _ in self.totals}))

    @functools.cached_property
    def _large_groups(self) -> tuple[str, ...]:
        """Groups with enough calibration texts for a category of their own."""
        sizes = dict.fromkeys(self.groups, 0)
        for (group, _), totals in self.totals.items():
            sizes[group] += len(totals)
        return tuple(group for group in self.groups if sizes[group] >= self.taxonomy.min_texts)

    @functools.cached_property
    def _group_codes(self) -> dict[str, int]:
        """Category row of each group: small groups share one, the last."""
        rows = {group: row for row, group in enumerate(self._large_groups)}
        return {group: rows.get(group, len(rows)) for group in self.groups}

    @property
    def has_others(self) -> bool:
        """Whether groups that were never seen have a category: that of the small ones."""
        return bool(self.taxonomy.by_group and self.taxonomy.min_texts)

    @functools.cached_property
    def kind_codes(self) -> tuple[int, ...]:
        """Which kind each kind is joined with; itself if it has enough calibration texts."""
        taxonomy = self.taxonomy
        n_rarities = len(taxonomy.rarity) + 1
        sizes = np.zeros((len(taxonomy.cardinality) + 1, n_rarities), dtype=np.int64)
        for (_, kind), totals in self.totals.items():
            sizes[divmod(kind, n_rarities)] += len(totals)
        by_size = _joined(sizes.sum(axis=1)[::-1].tolist(), taxonomy.min_texts)
        by_rarity = _joined(sizes.sum(axis=0).tolist(), taxonomy.min_texts)
        last = len(by_size) - 1
        return tuple(
            (last - by_size[last - kind // n_rarities]) * n_rarities + by_rarity[kind % n_rarities]
            for kind in range(taxonomy.n_kinds)
        )

    @functools.cached_property
    def table(self) -> dict[tuple[int, int], FloatArray]:
        """Sorted totals by (category row of the group, joined kind)."""
        parts: dict[tuple[int, int], list[FloatArray]] = {}
        for (group, kind), totals in self.totals.items():
            parts.setdefault((self._group_codes[group], self.kind_codes[kind]), []).append(totals)
        return {key: np.sort(np.concatenate(part)) for key, part in parts.items()}

    def codes_of(self, groups: Sequence[str] | None, n_texts: int, *, who: str) -> IntArray:
        """Return the category row of each text's group, (n,)."""
        if groups is None:
            return np.zeros(n_texts, dtype=np.int64)
        known, others = self._group_codes, len(self._large_groups)
        codes = np.empty(n_texts, dtype=np.int64)
        for row, group in enumerate(groups):
            if group not in known and not self.has_others:
                raise InvalidInputError(
                    f"The 'groups' parameter of {who} must hold groups with calibration texts: {_named(self.groups)}. "
                    f"Got {group!r} for text {row} instead. Calibrate with texts of it, or join small groups with "
                    "ByGroup(min_texts=...)."
                )
            codes[row] = known.get(group, others)
        return codes

    def category(self, code: int, kind: int) -> FloatArray:
        """Return the sorted totals of a category."""
        return self.table.get((code, self.kind_codes[kind]), np.empty(0))

    def name_of(self, code: int, kind: int) -> str:
        """Return a category in words."""
        kinds = [k for k, joined in enumerate(self.kind_codes) if joined == self.kind_codes[kind]]
        words = " or ".join(self.taxonomy.kind_name(k) for k in kinds) if self.taxonomy.n_kinds > 1 else ""
        named = f"group {self._large_groups[code]!r}" if code < len(self._large_groups) else "other groups"
        group = named if self.taxonomy.by_group else ""
        return ", ".join(filter(None, (group, words)))

    def thresholds(
        self,
        levels: Sequence[Fraction],
        which: IntArray,
        codes: IntArray,
        assurance: Fraction | None = None,
        tie_breaks: FloatArray | None = None,
    ) -> FloatArray:
        """Return the largest total of a member for each text and kind, (n, n_kinds).

        Text i is cut at levels[which[i]]; codes are those of `codes_of`.
        """
        thresholds = np.empty((len(codes), self.taxonomy.n_kinds))
        for code in np.unique(codes).tolist():
            rows = codes == code
            ties = None if tie_breaks is None else tie_breaks[rows]
            for kind in range(self.taxonomy.n_kinds):
                thresholds[rows, kind] = thresholds_of(self.category(code, kind), levels, which[rows], assurance, ties)
        return thresholds

    def p_values(
        self, totals: FloatArray, codes: IntArray, kinds: IntArray, tie_breaks: FloatArray | None = None
    ) -> FloatArray:
        """Return p-values of totals of label-sets, (m,), each among its category."""
        values = np.empty(len(totals))
        pairs, places = np.unique(np.column_stack([codes, kinds]), axis=0, return_inverse=True)
        for place, (code, kind) in enumerate(pairs.tolist()):
            rows = places.reshape(-1) == place
            ties = None if tie_breaks is None else tie_breaks[rows]
            values[rows] = self.among(code, kind, totals[rows], ties)
        return values

    def among(self, code: int, kind: int, totals: FloatArray, tie_breaks: FloatArray | None = None) -> FloatArray:
        """Return p-values of totals of any shape in one category."""
        return p_values_among(self.category(code, kind), totals, tie_breaks)

    def words_of_small(self, level: Fraction, limits: tuple[int, int]) -> str | None:
        """Name the categories of all groups whose candidates all stay plausible at a level; None if there is none."""
        n_large = len(self._large_groups)
        codes = np.arange(n_large + (self.has_others and n_large < len(self.groups)))
        candidates = [span is not None for span in self.taxonomy.spans(limits)]
        return self._small_words(level, codes, candidates, math.ceil(1 / level) - 1)

    def warn_of_small(self, level: Fraction, codes: IntArray, candidates: Sequence[bool], fewest: int) -> None:
        """Warn of categories whose candidates all stay plausible; `candidates` tells which kinds have any."""
        said = self._small_words(level, codes, candidates, fewest)
        if said is not None:
            warnings.warn(said, CalibrationWarning, stacklevel=5)

    def _small_words(self, level: Fraction, codes: IntArray, candidates: Sequence[bool], fewest: int) -> str | None:
        """Name the categories with fewer than `fewest` calibration texts, and say what that means."""
        small = []
        for code in np.unique(codes).tolist():
            for kind in sorted(set(self.kind_codes)):
                n_texts = len(self.category(code, kind))
                has_candidates = any(candidates[k] for k, joined in enumerate(self.kind_codes) if joined == kind)
                if has_candidates and n_texts < fewest:
                    small.append(f"{self.name_of(code, kind)} ({n_texts} texts)")
        if not small:
            return None
        return (
            f"Categories with fewer than {fewest} calibration texts cannot rule anything out at significance "
            f"{float(level):g}, so all their candidates stay plausible: {_named(small, '; ')}. Calibrate with more "
            "texts, or join small categories with 'min_texts' (--min-texts)."
        )


def _named(names: Sequence[str], separator: str = ", ") -> str:
    """Name the first of several things, and say how many more there are."""
    more = len(names) - _MOST_NAMED
    return separator.join(names[:_MOST_NAMED]) + (f"{separator}and {more} more" if more > 0 else "")


def _joined(sizes: Sequence[int], least: int) -> list[int]:
    """Return which kind each one of a row is joined with: small ones with the next, the last with the one before."""
    ends, gathered = [], 0
    for place, size in enumerate(sizes):
        gathered += size
        if gathered >= least:
            ends.append(place)
            gathered = 0
    if not ends:
        return [len(sizes) - 1] * len(sizes)
    return [next((end for end in ends if end >= place), ends[-1]) for place in range(len(sizes))]
