"""What a description says, as values, words and a picture."""

from __future__ import annotations

import dataclasses
from typing import Any

from surelabel._core.wording import count_words, label_sets_words, number_word, share_words
from surelabel.sets.descriptions.picture import draw

# Labels of the best guess that a text lists.
_MOST_LISTED = 8


@dataclasses.dataclass(frozen=True)
class LabelShare:
    """A label, and bounds of the share of members that have it; equal if the share is exact."""

    label: Any
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.label} ({share_words(self.lower, self.upper)})"


@dataclasses.dataclass(frozen=True)
class LabelGroup:
    """Labels of which every member has at_least..at_most, as tight as is known.

    Attributes
    ----------
    labels : tuple
        Names, or indices if there are no names, the most frequent first.
    shares : tuple of LabelShare
        Of the labels worth naming: all of them, or none in a large group of rare ones.
    at_least, at_most : int
    """

    labels: tuple[Any, ...]
    shares: tuple[LabelShare, ...]
    at_least: int
    at_most: int

    @property
    def is_free(self) -> bool:
        """Whether the group only says which labels may occur."""
        return self.at_least == 0 and self.at_most == len(self.labels)

    @property
    def how_many(self) -> str:
        """The budget in words: "at most one of", "any of", "two to four of"."""
        size, least, most = len(self.labels), self.at_least, self.at_most
        if least == most:
            return f"exactly {number_word(least)} of"
        if self.is_free:
            return "any of"
        if least == 0:
            return f"at most {number_word(most)} of"
        if most == size:
            return f"at least {number_word(least)} of"
        return f"{number_word(least)} to {number_word(most)} of"

    def words(self, *, first: bool = False) -> str:
        """Return the statement; unnamed labels are "others" unless they come first."""
        if self.shares:
            return f"{self.how_many}: {', '.join(str(share) for share in self.shares)}"
        return f"{self.how_many} {len(self.labels):,} {'labels' if first else 'others'}"


@dataclasses.dataclass(frozen=True)
class Description:
    """A prediction set in a few statements, each true of every member.

    Attributes
    ----------
    certain, excluded : tuple
        Labels that all members have, and that none has.
    groups : tuple of LabelGroup
        The open labels; each is in one group.
    n_labels_bounds : (int, int) or None
        Fewest and most labels of a member, if that says more than the groups do.
    best_guess : tuple
        The best member.
    most_changes : int or None
        In how many labels a member differs from the best guess at most, if that says more.
    size_bounds : (int, int)
        Number of members; equal if it is exact.
    n_fitting : int or None
        Label-sets that fit all statements, exactly; None if counting them takes too long.
    """

    certain: tuple[Any, ...]
    excluded: tuple[Any, ...]
    groups: tuple[LabelGroup, ...]
    n_labels_bounds: tuple[int, int] | None
    best_guess: tuple[Any, ...]
    most_changes: int | None
    size_bounds: tuple[int, int]
    n_fitting: int | None

    @property
    def complete(self) -> bool:
        """Whether exactly the members fit the statements."""
        return self.n_fitting == self.size_bounds[0]

    @property
    def shares(self) -> tuple[LabelShare, ...]:
        """All open labels that are named, with their shares."""
        return tuple(share for group in self.groups for share in group.shares)

    def statements(self) -> tuple[str, ...]:
        """Return the statements; the number of label-sets comes last."""
        lower, upper = self.size_bounds
        if upper == 0:
            return ("no label-set is plausible",)
        said = [f"certain: {', '.join(str(label) for label in self.certain)}"] if self.certain else []
        free = [str(share) for group in self.groups if group.is_free for share in group.shares]
        said += [f"open: {', '.join(free)}"] if free else []
        for group in self.groups:
            if not (group.shares and group.is_free):
                said.append(group.words(first=not said))
        if not self.groups:
            said.append("no other label" if self.certain else "no label")
        if self.n_labels_bounds is not None:
            least, most = self.n_labels_bounds
            number = number_word(least) if least == most else f"{least} to {most}"
            said.append(f"{number} label{'' if most == 1 else 's'} in all")
        if self.most_changes is not None:
            best = ", ".join(str(label) for label in self.best_guess[:_MOST_LISTED]) or "no label"
            if len(self.best_guess) > _MOST_LISTED:
                best += f" and {len(self.best_guess) - _MOST_LISTED:,} more"
            changes = "change" if self.most_changes == 1 else "changes"
            said.append(f"at most {number_word(self.most_changes)} {changes} to the most plausible ({best})")
        size = label_sets_words(lower, upper)
        if not self.complete:
            fitting = "more" if self.n_fitting is None else count_words(self.n_fitting)
            size += f" of {fitting} that fit this"
        return (*said, size)

    def __str__(self) -> str:
        return "; ".join(self.statements())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; the text is among them."""
        values = {name: list(value) if isinstance(value, tuple) else value for name, value in vars(self).items()}
        values["groups"] = [
            vars(group) | {"labels": list(group.labels), "shares": [[one.lower, one.upper] for one in group.shares]}
            for group in self.groups
        ]
        return {"text": str(self), "complete": self.complete, **values}

    def to_svg(self, *, name: str = "description") -> str:
        """Return a small picture: one SVG element, readable in grey and on light and dark pages.

        Parameters
        ----------
        name : str
            Letters, digits and "-". Starts every id within, so that one page can hold several pictures.
        """
        return draw(self, name)
