"""What a description says, as values, words and a picture."""

from __future__ import annotations

import dataclasses
from typing import Any

from surelabel._core.wording import count_words, label_sets_words, number_word, share_words

__all__ = ["Description", "LabelGroup", "LabelShare"]

# Labels of the likeliest label-set that a text lists.
_MOST_LISTED = 8


@dataclasses.dataclass(frozen=True)
class LabelShare:
    """A label, and bounds of the share of members that have it; equal where the share is exact."""

    label: Any
    lower: float
    upper: float

    def __str__(self) -> str:
        return f"{self.label} ({share_words(self.lower, self.upper)})"

    @property
    def how_often(self) -> str:
        """Say "often" where half of the members or more have it, "sometimes" where fewer, "possibly" where unknown."""
        if self.lower >= 0.5:
            return "often"
        return "sometimes" if self.upper < 0.5 else "possibly"


@dataclasses.dataclass(frozen=True)
class LabelGroup:
    """Labels of which every member has at_least..at_most, as tight as is known.

    Attributes
    ----------
    labels : tuple
        Names, or indices where names are not known, the most frequent first.
    shares : tuple of LabelShare
        Of the labels that are worth naming: all of them, or none, in a large group of rare ones.
    at_least, at_most : int
    """

    labels: tuple[Any, ...]
    shares: tuple[LabelShare, ...]
    at_least: int
    at_most: int

    @property
    def is_free(self) -> bool:
        """Whether the group says nothing but which labels may occur."""
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
        """Return the statement; labels without a name are "others" unless they are what is spoken of first."""
        if self.shares:
            return f"{self.how_many}: {', '.join(str(share) for share in self.shares)}"
        return f"{self.how_many} {len(self.labels):,} {'labels' if first else 'others'}"


@dataclasses.dataclass(frozen=True)
class Description:
    """A prediction set in a few statements, each true of every member.

    Attributes
    ----------
    always, never : tuple
        Labels that all members have, and that none has.
    groups : tuple of LabelGroup
        The other labels; each is in one group.
    n_labels_bounds : (int, int) or None
        Fewest and most labels of a member, where that says more than the groups do.
    likeliest : tuple
        The best member.
    most_changes : int or None
        Labels that a member has more or fewer than the likeliest one, at most, where that says more.
    size_bounds : (int, int)
        Number of members; equal where it is exact.
    n_fitting : int or None
        Label-sets that fit all statements, exactly; None where counting them takes too long.
    """

    always: tuple[Any, ...]
    never: tuple[Any, ...]
    groups: tuple[LabelGroup, ...]
    n_labels_bounds: tuple[int, int] | None
    likeliest: tuple[Any, ...]
    most_changes: int | None
    size_bounds: tuple[int, int]
    n_fitting: int | None

    @property
    def complete(self) -> bool:
        """Whether the label-sets that fit the statements are the members, and no other."""
        return self.n_fitting == self.size_bounds[0]

    @property
    def shares(self) -> tuple[LabelShare, ...]:
        """All labels with a share that are named, apart from those that are always there."""
        return tuple(share for group in self.groups for share in group.shares)

    def statements(self) -> tuple[str, ...]:
        """Return what is said, one statement each; the number of label-sets comes last."""
        lower, upper = self.size_bounds
        if upper == 0:
            return ("no label-set is plausible",)
        free = [share for group in self.groups if group.is_free for share in group.shares]
        said = [f"always: {', '.join(str(label) for label in self.always)}"] if self.always else []
        for when in ("often", "possibly", "sometimes"):
            labels = [str(share) for share in free if share.how_often == when]
            said += [f"{when}: {', '.join(labels)}"] if labels else []
        for group in self.groups:
            if not (group.shares and group.is_free):
                said.append(group.words(first=not said))
        if not self.groups:
            said.append("nothing else" if self.always else "no label")
        if self.n_labels_bounds is not None:
            least, most = self.n_labels_bounds
            number = number_word(least) if least == most else f"{least} to {most}"
            said.append(f"{number} label{'' if most == 1 else 's'} in all")
        if self.most_changes is not None:
            best = ", ".join(str(label) for label in self.likeliest[:_MOST_LISTED]) or "no label"
            if len(self.likeliest) > _MOST_LISTED:
                best += f" and {len(self.likeliest) - _MOST_LISTED:,} more"
            changes = "change" if self.most_changes == 1 else "changes"
            said.append(f"at most {number_word(self.most_changes)} {changes} to the likeliest ({best})")
        size = label_sets_words(lower, upper)
        if not self.complete:
            fitting = "more" if self.n_fitting is None else count_words(self.n_fitting)
            size += f" of {fitting} that fit this"
        return (*said, size)

    def __str__(self) -> str:
        return "; ".join(self.statements())

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; the text is among them."""
        return {
            "text": str(self),
            "complete": self.complete,
            "always": list(self.always),
            "groups": [
                {
                    "labels": list(group.labels),
                    "at_least": group.at_least,
                    "at_most": group.at_most,
                    "shares": [[share.lower, share.upper] for share in group.shares],
                }
                for group in self.groups
            ],
            "never": list(self.never),
            "n_labels_bounds": None if self.n_labels_bounds is None else list(self.n_labels_bounds),
            "likeliest": list(self.likeliest),
            "most_changes": self.most_changes,
            "size_bounds": list(self.size_bounds),
            "n_fitting": self.n_fitting,
        }

    def to_svg(self, *, name: str = "description") -> str:
        """Return a small picture: one SVG element, readable in grey and on light and dark pages.

        Parameters
        ----------
        name : str
            Letters, digits and "-". Starts every id within, so that several pictures can stand in one page.
        """
        from surelabel.sets.descriptions.picture import draw  # noqa: PLC0415

        return draw(self, name)
